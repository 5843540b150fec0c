from __future__ import annotations

import pynvml

from workers.device import resolve
from workers.measure import conditions


def test_a_cpu_tells_its_model_and_cores_and_leaves_open_what_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(conditions, "_CPUFREQ", tmp_path)
    monkeypatch.setattr(conditions, "_NO_TURBO", tmp_path / "no_turbo")
    monkeypatch.setattr(conditions, "_BOOST", tmp_path / "boost")
    bare = conditions.read(resolve("cpu"))
    assert bare["processor"]
    assert bare["cores"] >= 1
    assert (bare["governor"], bare["turbo"]) == (None, None)
    assert "sm_clock_mhz" not in bare
    (tmp_path / "scaling_governor").write_text("powersave\n")
    (tmp_path / "scaling_cur_freq").write_text("2400000\n")
    (tmp_path / "boost").write_text("1\n")
    told = conditions.read(resolve("cpu"))
    assert (told["governor"], told["frequency_mhz"], told["turbo"]) == ("powersave", 2400.0, True)
    (tmp_path / "no_turbo").write_text("1\n")
    assert conditions.read(resolve("cpu"))["turbo"] is False


def test_a_gpu_adds_its_own_state_to_that_of_the_processor(card, gpu):
    card.reasons = pynvml.nvmlClocksEventReasonHwSlowdown
    found = conditions.read(gpu)
    assert found["processor"]
    assert found["throttle_reasons"] == ["hardware slowdown"]
    assert found["sm_clock_mhz"] == 1755
