"""A search that trades and bounds what a network costs in runtimes that it names."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable
from typing import Any

import pytest

from search.cli import look_text
from search.front import FrontView, front_view
from search.states import CandidateState
from search.store.models import Candidate, MeasurementRow
from search.store.read.searches import search_by_name
from workers.job import Further, Job, Kind, Outcome

Make = Callable[..., Any]
ASKED: dict[str, Any] = {
    "objectives": ["accuracy", "latency_ms@onnxruntime"],
    "constraints": {"latency_ms@onnxruntime:int8": 100.0, "latency_ms": 50.0},
}


def view_of(bench: Any) -> FrontView:
    with bench.store.read() as reader:
        return front_view(reader, search_by_name(reader, bench.config.name))


def test_one_job_measures_in_every_runtime_that_is_named_each_with_its_own_limits(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(**ASKED)
    asked = []

    def perform(job: Job) -> Outcome:
        if job.kind == Kind.MEASURE:
            asked.append((job.latency_limits, job.further))
            assert Job.from_json(job.to_json()) == job
        else:
            assert job.further == ()
        outcome = answer(job, bench.digest)
        assert Outcome.from_json(outcome.to_json()) == outcome
        return outcome

    bench.run(bench.driver(), perform)
    further = (Further("onnxruntime", "fp32"), Further("onnxruntime", "int8", (100.0,)))
    assert set(asked) == {((50.0,), further)}
    runtimes = {(row.runtime, row.precision) for row in bench.rows(MeasurementRow)}
    assert runtimes == {("torch", "fp32"), ("onnxruntime", "fp32"), ("onnxruntime", "int8")}


def test_the_front_compares_figures_of_the_runtime_that_it_names(make_bench: Make) -> None:
    bench = make_bench(**ASKED)
    bench.run(bench.driver())
    view = view_of(bench)
    assert view.front
    for point in view.front:
        assert point.values["latency_ms@onnxruntime"] == pytest.approx(point.values["latency_ms"] / 2)
        low, high = point.intervals["latency_ms@onnxruntime"]
        assert low < point.values["latency_ms@onnxruntime"] < high
    assert "onnxruntime int8" in view.measured_how["latency_ms@onnxruntime:int8"]
    assert [limit.name for limit in view.limits] == list(ASKED["constraints"])
    costs = [point.values["latency_ms@onnxruntime"] for point in view.front]
    assert costs == sorted(costs)
    text = look_text.front(view, everything=True)
    assert "latency_ms@onnxruntime " in text
    (row, *_) = csv.DictReader(io.StringIO(look_text.csv([view], everything=False)))
    assert float(row["latency_ms@onnxruntime"]) == view.front[0].values["latency_ms@onnxruntime"]


def test_a_limit_in_one_runtime_rejects_by_that_runtime_alone(make_bench: Make, answer: Any) -> None:
    bench = make_bench(**ASKED | {"constraints": {"latency_ms@onnxruntime:int8": 100.0}})

    def perform(job: Job) -> Outcome:
        outcome = answer(job, bench.digest)
        slow = [
            dataclasses.replace(one, latency_ms=200.0, latency_ms_low=190.0, latency_ms_high=210.0)
            if one.precision == "int8"
            else one
            for one in outcome.further
        ]
        return dataclasses.replace(outcome, further=tuple(slow))

    bench.run(bench.driver(), perform)
    rows = [row for row in bench.rows(Candidate) if row.number > 0]
    assert {row.state for row in rows} == {CandidateState.REJECTED}
    assert {row.reason for row in rows} == {"latency_ms@onnxruntime:int8 200 is above the limit 100"}


def test_a_figure_in_another_runtime_is_never_taken_for_the_one_that_is_named(make_bench: Make) -> None:
    """With the rows of onnxruntime gone, nothing is compared, though torch's are there."""
    bench = make_bench(**ASKED)
    bench.run(bench.driver())

    def without(session: Any) -> None:
        for row in session.query(MeasurementRow).filter(MeasurementRow.runtime == "onnxruntime"):
            session.delete(row)

    bench.store.write(without)
    view = view_of(bench)
    assert view.front == ()
    assert {str(p.standing) for p in view.candidates if p.row.state == "finished"} == {"incomparable"}


@pytest.mark.parametrize(("again", "measured"), [(False, 0), (True, 2)])
def test_a_second_search_takes_over_each_runtimes_figures_unless_it_measures_again(
    make_bench: Make, answer: Any, again: bool, measured: int
) -> None:
    """Under the same seed both have the baseline and a candidate in common."""
    settings = {**ASKED, "max_candidates": 1, "rungs": "none", "seed": 1}
    first = make_bench(**settings)
    first.run(first.driver())
    second = make_bench(**settings, cost={"again": again})
    jobs = []

    def perform(job: Job) -> Outcome:
        jobs.append(job.kind)
        return answer(job, second.digest)

    second.run(second.driver(), perform)
    assert jobs.count(Kind.MEASURE) == measured
    taken = [row for row in second.rows(MeasurementRow) if row.source_id is not None]
    assert len(taken) == (0 if again else 6), "three runtimes each"
    for row in second.rows(Candidate):
        assert "latency_ms@onnxruntime:int8" in row.measured
