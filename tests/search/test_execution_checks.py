"""Settings of how trainings are executed that cannot be used on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from search import config, execution_checks, probing
from search.errors import UsageError
from search.plan import Plan, make_plan
from workers import compiler, perform
from workers.data.summary import DataSummary
from workers.device import Device

DATA = DataSummary(8, 1, tuple("0123456789"), {"train": 640, "val": 10, "test": 10}, "digest")
CPU, GPU = Device("cpu", "cpu-1t", "a CPU", 1), Device("cuda:0", "gpu-1", "a GPU", 1)
SET = {"precision": "fp32", "memory_format": "contiguous", "compile": "off", "threads": 1}


def plan_of(search: dict[str, Any] | None = None, **training: Any) -> Plan:
    values = {
        "name": "s",
        "data": {"source": "digits"},
        "training": training,
        "search": search or {},
        "baselines": {},
    }
    return make_plan(config.from_dict(values), DATA)


def refused(plan: Plan) -> str:
    with pytest.raises(UsageError) as caught:
        execution_checks.check(plan)
    return str(caught.value)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cores, a compiler, no GPU."""
    monkeypatch.setattr(perform, "training_device", lambda _: CPU)
    monkeypatch.setattr(compiler, "missing", lambda is_cuda: None)
    for module in (probing, execution_checks):
        monkeypatch.setattr(module, "num_cores", lambda: 4)


def test_compiling_without_a_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    execution_checks.check(plan_of(compile="on"))
    monkeypatch.setattr(compiler, "missing", lambda is_cuda: "no C++ compiler is here (g++)")
    assert refused(plan_of(compile="on")).endswith(
        "training.compile: on: no C++ compiler is here (g++); install it, or set off"
    )
    execution_checks.check(plan_of())


def test_more_threads_than_a_worker_has_are_refused() -> None:
    execution_checks.check(plan_of({"workers": 2}, threads=2))
    assert (
        "training.threads: 3 is more than the 2 of each worker (4 here); lower it, or search.workers"
        in refused(plan_of({"workers": 2}, threads=3))
    )
    assert "2 is more than the 1 of each worker" in refused(plan_of(threads=2))


def test_a_gpu_takes_no_threads_and_bf16_only_where_it_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perform, "training_device", lambda _: GPU)
    monkeypatch.setattr(execution_checks, "_can_bf16", lambda _: False)
    assert "training.threads: training is on the GPU" in refused(plan_of(threads=1))
    assert "training.precision: a GPU cannot do bf16; set fp32" in refused(plan_of(precision="bf16"))
    execution_checks.check(plan_of())


def test_a_time_for_probes_is_refused_where_none_runs() -> None:
    execution_checks.check(plan_of(probe_seconds=2.0))
    assert "training.probe_seconds: no probe runs" in refused(plan_of(**SET, probe_seconds=2.0))


def test_how_trainings_will_be_executed_is_told() -> None:
    assert execution_checks.line(plan_of(**SET)) == (
        "precision fp32, memory_format contiguous, compile off, threads 1"
    )
    assert execution_checks.line(plan_of(precision="bf16")).endswith("auto: as a probe finds, once a family")
