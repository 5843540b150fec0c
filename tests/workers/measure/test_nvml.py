from __future__ import annotations

import os
import time

import pynvml
import pytest

from workers.device import Device
from workers.measure import nvml
from workers.measure.contention import GpuLoad, GpuWatch


def test_the_state_of_a_card_has_units_in_its_names_and_reasons_in_words(card, gpu):
    card.reasons = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonSwThermalSlowdown
    found = nvml.gpu_of(gpu)
    assert found is not None
    assert found.state() == {
        "sm_clock_mhz": 1755,
        "sm_clock_max_mhz": 1980,
        "memory_clock_mhz": 2619,
        "temperature_c": 41,
        "power_w": 71.5,
        "power_limit_w": 700.0,
        "performance_state": "P0",
        "throttle_reasons": ["power limit", "temperature"],
        "driver": "580.95.05",
    }


def test_what_a_card_does_not_tell_is_none_and_raises_nothing(card, gpu):
    card.reasons = card.temperature_c = card.limit_mw = card.processes = None
    found = nvml.gpu_of(gpu)
    assert found is not None
    state = found.state()
    assert (state["temperature_c"], state["power_limit_w"], state["throttle_reasons"]) == (None, None, None)
    assert found.energy_mj() is None
    assert found.others_share(0) is None


def test_another_card_a_cpu_and_a_machine_without_the_library_have_none(card, gpu, monkeypatch):
    assert nvml.gpu_of(Device("cuda:1", "gpu-another", "a card", 1)) is None
    assert nvml.gpu_of(Device("cpu", "cpu-x-1t", "a CPU", 1)) is None
    monkeypatch.setattr(nvml, "_library", lambda: None)
    assert nvml.gpu_of(gpu) is None


def test_every_function_and_constant_that_is_asked_for_is_in_the_installed_library(card):
    """The test's own card would hide a misspelt name."""
    names = [name for name in dir(type(nvml._library())) if name.lower().startswith("nvml")]
    assert len(names) > 10
    assert [name for name in (*names, *nvml.REASONS) if not hasattr(pynvml, name)] == []


def test_another_process_on_the_gpu_is_noticed_and_our_own_is_not_taken_for_it(card, gpu, sample):
    watch = GpuWatch(gpu)
    now = time.time_ns() // 1000
    card.processes = [sample(os.getpid(), now, 80), sample(os.getpid(), now + 1, 60)]
    assert watch.load(0.02) == GpuLoad(0.0, 0.02)
    assert not watch.load(0.02).is_contended()
    card.processes = [*card.processes, sample(1, now, 30), sample(1, now + 1, 10)]
    assert watch.load(0.02).others_share == pytest.approx(0.2)
    assert watch.load(0.02).is_contended()


def test_where_a_container_hides_our_number_the_busiest_process_counts_as_ours(card, gpu, sample):
    watch = GpuWatch(gpu)
    now = time.time_ns() // 1000
    card.processes = [sample(1, now, 90)]
    assert watch.load(0.02).others_share == 0
    card.processes = [sample(1, now, 90), sample(2, now, 40)]
    assert watch.load(0.02).others_share == pytest.approx(0.4)


def test_samples_from_before_do_not_count_and_without_any_nothing_worked(card, gpu, sample):
    watch = GpuWatch(gpu)
    card.processes = [sample(1, 5, 90), sample(2, 5, 90)]
    assert watch.load(0.02).others_share == 0.0


def test_timings_that_scatter_on_a_gpu_are_contended_whoever_disturbs_them():
    assert GpuLoad(None, 0.5).is_contended()
    assert not GpuLoad(None, 0.05).is_contended()
