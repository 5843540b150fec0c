"""Limits on a measured cost, from the job that measures to the state of the candidate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from search.states import CandidateState
from search.store.write import candidates as rows
from workers.job import Job, Kind, Outcome, Status

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


def test_a_baseline_that_a_limit_follows_from_is_measured_longer_than_what_is_judged_by_it(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(constraints={"latency_ms": "2x resnet"}, max_candidates=1)
    asked: dict[int, tuple[float, float]] = {}

    def perform(job: Job) -> Outcome:
        if job.kind == Kind.MEASURE:
            cost = job.settings.cost
            asked[job.candidate] = (cost.relative_error, cost.max_seconds)
        return answer(job, bench.digest)

    bench.run(bench.driver(), perform)
    assert asked == {-1: (0.0025, 6.0), 1: (0.01, 1.5)}


@pytest.mark.parametrize(
    ("factor", "state"), [(2.04, CandidateState.FINISHED), (2.08, CandidateState.REJECTED)]
)
def test_a_candidate_is_rejected_only_when_the_whole_interval_of_the_baselines_multiple_is_broken(
    make_bench: Make, answer: Any, factor: float, state: CandidateState
) -> None:
    """Both are known to 1%: the limit from 1.98 to 2.02 times the baseline, 2.04 times it from 2.02 on."""
    bench = make_bench(constraints={"latency_ms": "2x resnet"}, max_candidates=1)
    baseline = []

    def perform(job: Job) -> Outcome:
        outcome = answer(job, bench.digest)
        if job.kind != Kind.MEASURE:
            return outcome
        if job.candidate < 0:
            baseline.append(outcome.measurement.latency_ms)
            return outcome
        latency = factor * baseline[0]
        figures = {"latency_ms": latency, "latency_ms_low": 0.99 * latency, "latency_ms_high": 1.01 * latency}
        return dataclasses.replace(outcome, measurement=dataclasses.replace(outcome.measurement, **figures))

    bench.run(bench.driver(), perform)
    assert states(bench) == {1: state}


def test_a_candidate_that_does_not_fit_into_the_memory_is_rejected_and_one_that_is_broken_failed(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(max_candidates=2, baselines={})
    reason = "out of memory: asked for 900 MB, more than a job may take here"

    def perform(job: Job) -> Outcome:
        outcome = answer(job, bench.digest)
        if job.kind != Kind.MEASURE:
            return outcome
        notes = {"infeasible": True} if job.candidate == 1 else {}
        return dataclasses.replace(
            outcome, status=Status.FAILED, reason=reason, measurement=None, notes=notes
        )

    bench.run(bench.driver(), perform)
    assert states(bench) == {1: CandidateState.REJECTED, 2: CandidateState.FAILED}
