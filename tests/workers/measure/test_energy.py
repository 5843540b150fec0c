from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from workers.device import Device
from workers.measure import energy
from workers.measure.energy import Energy

CPU = Device("cpu", "cpu-x-1t", "a CPU", 1)


@dataclass
class Meter:
    """Counts `idle` watts all the time, and `work` millijoules a call; moves every `tick` seconds as cards do."""

    idle: float
    work: float
    tick: float = 0.02
    calls: int = 0
    _shown: int = 0
    _moved: float = -1.0

    def call(self) -> None:
        time.sleep(0.001)
        self.calls += 1

    def read(self) -> int:
        now = time.perf_counter()
        if now - self._moved >= self.tick:
            self._moved = now
            self._shown = round(self.idle * now * 1000 + self.work * self.calls)
        return self._shown


def nothing() -> None:
    pass


def test_energy_is_what_calls_add_to_idle_power_per_image(card, gpu):
    meter = Meter(idle=70.0, work=8.0)
    card.energy_mj = meter.read
    found = energy.measure(gpu, meter.call, 4, 0.3, nothing)
    assert found.energy_mj == pytest.approx(2.0, rel=0.1)
    assert found.idle_w == pytest.approx(70.0, rel=0.05)
    assert found.source == "NVML, the whole card"


def test_twice_the_work_is_twice_the_energy_and_idle_power_is_read_once(card, gpu):
    light, heavy = Meter(idle=70.0, work=5.0), Meter(idle=70.0, work=10.0)
    card.energy_mj = light.read
    first = energy.measure(gpu, light.call, 1, 0.3, nothing)
    card.energy_mj = heavy.read
    start = time.perf_counter()
    second = energy.measure(gpu, heavy.call, 1, 0.3, nothing)
    assert time.perf_counter() - start < 0.5, "the device was left idle again"
    assert first.energy_mj is not None
    assert second.energy_mj == pytest.approx(2 * first.energy_mj, rel=0.15)


@pytest.mark.parametrize("answer", [None, lambda: 12345], ids=["not supported", "stands still"])
def test_without_a_counter_that_moves_there_is_no_figure_and_the_reason_is_said(card, gpu, answer):
    card.energy_mj = answer
    found = energy.measure(gpu, nothing, 1, 0.1, nothing)
    assert found.energy_mj is None
    told = "no energy counter on this device: the card counts none" if answer is None else "does not move"
    assert told in found.source


def test_a_card_that_nvml_does_not_know_is_told_from_one_that_counts_nothing(card):
    found = energy.measure(Device("cuda:1", "gpu-another", "a card", 1), nothing, 1, 0.1, nothing)
    assert found == Energy(None, "no energy counter on this device: NVML does not know the card")


def test_work_that_takes_no_more_than_idle_gives_no_figure(card, gpu):
    meter = Meter(idle=70.0, work=0.0)
    card.energy_mj = meter.read
    found = energy.measure(gpu, meter.call, 1, 0.2, nothing)
    if found.energy_mj is not None:  # the clock's own noise
        assert found.energy_mj < 2.0
    else:
        assert "not above idle" in found.source


def rapl(root: Path, name: str, value: int) -> Path:
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / "max_energy_range_uj").write_text("1000000")
    (folder / "energy_uj").write_text(str(value))
    return folder


def test_rapl_adds_the_packages_but_not_their_parts_and_follows_a_counter_over_its_end(tmp_path):
    rapl(tmp_path, "intel-rapl:0", 999_000)
    rapl(tmp_path, "intel-rapl:1", 0)
    rapl(tmp_path, "intel-rapl:0:0", 0)
    counter = energy._rapl(tmp_path)
    assert counter is not None
    rapl(tmp_path, "intel-rapl:0", 4_000)  # 5,000 further on, over the end
    rapl(tmp_path, "intel-rapl:1", 2_000)
    rapl(tmp_path, "intel-rapl:0:0", 900_000)
    assert counter.read_mj() == 7.0
    rapl(tmp_path, "intel-rapl:1", 3_000)
    assert counter.read_mj() == 8.0
    assert "processor packages" in counter.source


def test_a_cpu_without_rapl_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(energy, "POWERCAP", tmp_path / "none")
    found = energy.measure(CPU, nothing, 1, 0.1, nothing)
    assert found == Energy(None, "no energy counter on this device: the system has no RAPL")


def test_a_counter_that_this_user_may_not_read_is_told_from_none(tmp_path, monkeypatch):
    (tmp_path / "intel-rapl:0").mkdir()
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    found = energy.measure(CPU, nothing, 1, 0.1, nothing)
    assert found.energy_mj is None
    assert "may not be read by this user" in found.source
