"""Limits on a measured cost, from the job that measures to the state of the candidate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from search.states import CandidateState
from search.store.write import candidates as rows
from workers.job import Job, Kind, Outcome

Make = Callable[..., Any]


def states(bench: Any) -> dict[int, str]:
    return bench.store.write(
        lambda s: {row.number: row.state for row in rows.all_of(s, bench.search_id) if row.number > 0}
    )


def test_a_measurement_knows_the_limits_that_it_will_be_judged_by(make_bench: Make, answer: Any) -> None:
    bench = make_bench(constraints={"latency_ms": "2x resnet", "model_mb": 50})
    seen: dict[int, tuple[float, ...]] = {}
    latency = []

    def perform(job: Job) -> Outcome:
        outcome = answer(job, bench.digest)
        if job.kind == Kind.MEASURE:
            seen[job.candidate] = job.latency_limits
            latency.append(outcome.measurement.latency_ms)
        else:
            assert job.latency_limits == ()
        return outcome

    bench.run(bench.driver(), perform)
    assert seen.pop(-1) == ()
    assert set(seen.values()) == {(2 * latency[0],)}


@pytest.mark.parametrize(
    ("bounds", "state"),
    [
        ((1.9, 2.0), CandidateState.FINISHED),
        ((1.95, 2.1), CandidateState.FINISHED),
        ((2.01, 2.2), CandidateState.REJECTED),
    ],
    ids=["within", "straddling", "above"],
)
def test_only_a_cost_that_is_above_its_limit_for_sure_rejects(
    make_bench: Make, answer: Any, bounds: tuple[float, float], state: CandidateState
) -> None:
    bench = make_bench(constraints={"latency_ms": 2.0})

    def perform(job: Job) -> Outcome:
        outcome = answer(job, bench.digest)
        if job.kind != Kind.MEASURE:
            return outcome
        low, high = bounds
        figures = {"latency_ms": (low + high) / 2, "latency_ms_low": low, "latency_ms_high": high}
        return dataclasses.replace(outcome, measurement=dataclasses.replace(outcome.measurement, **figures))

    bench.run(bench.driver(), perform)
    found = set(states(bench).values())
    assert found == {state} if state == CandidateState.REJECTED else state in found
    assert state == CandidateState.REJECTED or CandidateState.REJECTED not in found
