from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workers import device
from workers.elsewhere import PROTOCOL, machine, timing
from workers.measure import cpu
from workers.measure import timing as at_home


def test_it_measures_with_numpy_and_onnxruntime_alone(measured: Path) -> None:
    found = json.loads(measured.read_text())
    assert found["protocol"] == PROTOCOL
    assert found["device"]["label"] == "edge"
    assert [(one["id"], one["batch_size"]) for one in found["results"]] == [
        ("m1", 1),
        ("m1", 2),
        ("m2", 1),
        ("m2", 2),
    ]
    for one in found["results"]:
        assert 0 < one["latency_ms_low"] <= one["latency_ms"] <= one["latency_ms_high"]
        assert one["num_samples"] >= 3
        assert one["peak_memory_mb"] > 0
        assert set(one["software"]) == {"onnxruntime", "numpy", "python", "system"}
    assert found["failures"] == []


def test_the_hook_of_these_tests_refuses_other_packages(bundle: Path, on_the_other_machine: Any) -> None:
    script = bundle / "measure.py"
    script.write_text("import torch\n")
    assert "torch is not on this machine" in on_the_other_machine(bundle).stderr


def test_a_machine_has_the_id_that_it_has_at_home() -> None:
    here = device.resolve("cpu", 3)
    assert (machine.device_id(3), cpu.cpu_name()) == (here.id, here.name)


def test_it_times_as_at_home() -> None:
    names = ["WARM_UP_SHARE", "WARM_UP_TOLERANCE", "MIN_SAMPLES", "MIN_SECONDS", "FEWEST_SAMPLES"]
    names += ["THROUGHPUT_GROWTH", "THROUGHPUT_GAIN"]
    assert {name: getattr(timing, name) for name in names} == {name: getattr(at_home, name) for name in names}


@pytest.mark.parametrize("name", ["m1.onnx", "images-1x8.npy", "measure.py", "paretovit_measure/timing.py"])
def test_a_file_that_was_changed_on_the_way_is_named_and_nothing_measured(
    bundle: Path, on_the_other_machine: Any, name: str
) -> None:
    with (bundle / name).open("ab") as file:
        file.write(b"\n")
    done = on_the_other_machine(bundle)
    assert done.returncode == 1
    assert f"{bundle / name}: has changed since it was written" in done.stderr
    assert not (bundle / "results.json").exists()


def test_a_changed_manifest_and_a_missing_file_are_named(bundle: Path, on_the_other_machine: Any) -> None:
    manifest = bundle / "manifest.json"
    kept = manifest.read_text()
    manifest.write_text(kept.replace('"threads": 1', '"threads": 2'))
    assert f"{manifest}: has changed" in on_the_other_machine(bundle).stderr
    manifest.write_text(kept)
    (bundle / "m2.onnx").unlink()
    assert f"{bundle / 'm2.onnx'}: is missing" in on_the_other_machine(bundle).stderr


def test_one_network_can_be_asked_for(bundle: Path, on_the_other_machine: Any) -> None:
    assert on_the_other_machine(bundle, "--only", "m2").returncode == 0
    found = json.loads((bundle / "results.json").read_text())
    assert {one["id"] for one in found["results"]} == {"m2"}
    assert "m9 is not in" in on_the_other_machine(bundle, "--only", "m9").stderr
