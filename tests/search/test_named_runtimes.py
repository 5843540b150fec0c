"""Quantities that name a runtime: read from names, measured beside the others, kept apart, and judged by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from search import gate, named_runtimes
from search.named_runtimes import NamedRuntime, named
from search.objectives import Limit, parse_constraints, parse_objectives, quantity
from workers.job import Measurement


def test_a_name_says_which_quantity_in_which_runtime():
    found = quantity("latency_ms@onnxruntime:int8")
    assert (found.name, found.unit, found.direction) == ("latency_ms@onnxruntime:int8", "ms", "min")
    assert found.label == "latency, median (onnxruntime int8)"
    assert quantity("throughput@openvino").maximise


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("accuracy@torch", "accuracy takes no @torch; those that name a runtime are latency_ms, "),
        ("params@onnxruntime", "params takes no @onnxruntime"),
        ("flops@openvino", "flops takes no @openvino"),
        ("latency_ms@onnxruntim", "unknown runtime 'onnxruntim'; nearest: onnxruntime"),
        ("latency_ms@torch:fp8", "unknown precision 'fp8'; known: fp32, bf16"),
        ("latency_ms@torch:", "unknown precision ''"),
        ("latency_ms@", "unknown runtime ''; known: torch, torch-compile"),
        ("latency@torch", "unknown quantity 'latency@torch'"),
    ],
)
def test_names_that_mean_nothing_are_refused_saying_what_there_is(name, message):
    for read in (lambda: parse_objectives(["accuracy", name]), lambda: parse_constraints({name: 1.0})):
        with pytest.raises(ValueError) as caught:
            read()
        assert message in str(caught.value)


def test_a_runtime_without_a_precision_has_that_of_the_search_and_each_is_named_once():
    names = [
        "accuracy",
        "latency_ms@openvino",
        "peak_memory_mb@openvino",
        "latency_ms@openvino:fp32",
        "latency_ms",
    ]
    assert named(names, "bf16") == (
        NamedRuntime("@openvino", "openvino", "bf16"),
        NamedRuntime("@openvino:fp32", "openvino", "fp32"),
    )
    config = {"objectives": names, "constraints": {"latency_ms@torch": 3}, "cost": {"precision": "auto"}}
    assert [one.key for one in named_runtimes.of_config(config)] == [
        ("openvino", "fp32"),
        ("openvino", "fp32"),
        ("torch", "fp32"),
    ]


def measured(runtime: str, precision: str, latency: float) -> Measurement:
    figures: dict[str, Any] = dict.fromkeys(
        ["latency_ms_p95", "latency_ms_spread", "latency_relative_error", "throughput", "peak_memory_mb"],
        latency,
    )
    figures |= dict.fromkeys(["model_mb", "build_seconds", "first_call_ms", "seconds"], latency)
    return Measurement(
        protocol="p",
        device_id="d",
        device_name="d",
        threads=1,
        runtime=runtime,
        precision=precision,
        batch_size=1,
        latency_ms=latency,
        latency_ms_low=latency * 0.9,
        latency_ms_high=latency * 1.1,
        latency_ms_p99=None,
        num_samples=100,
        stopped_by="max_seconds",
        throughput_batch_size=1,
        **figures,
    )


def test_each_runtimes_figures_carry_its_name_and_are_judged_by_its_own_limit():
    eager, other = measured("torch", "fp32", 10.0), measured("onnxruntime", "fp32", 2.0)
    runtimes = named(["latency_ms@onnxruntime", "latency_ms@openvino"], "fp32")
    values, intervals = gate.named_values(runtimes, (eager, other))
    assert values["latency_ms@onnxruntime"] == 2.0
    assert intervals == {"latency_ms@onnxruntime": (1.8, 2.2)}
    assert "latency_ms" not in values
    assert not any(name.endswith("@openvino") for name in values), "what was not measured is not known"
    limits = [Limit("latency_ms@onnxruntime", 5.0, upper=True)]
    assert gate.rejection(limits, values, intervals) is None
    slow = gate.named_values(runtimes, (eager, replace(other, latency_ms_low=6.0, latency_ms_high=8.0)))
    assert gate.rejection(limits, *slow) == "latency_ms@onnxruntime 2 is above the limit 5"
    straddling = gate.named_values(runtimes, (eager, replace(other, latency_ms_low=4.0, latency_ms_high=8.0)))
    assert "contains the limit 5" in (gate.doubt(limits, *straddling) or "")
