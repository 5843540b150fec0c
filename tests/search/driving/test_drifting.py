"""A device that changes while a search goes on."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from dashboards import conditions
from dashboards.search_data import load
from search.driver import Idle
from search.states import CandidateState, JobState
from search.status import status
from search.store.models import Candidate, Event, JobRow, MeasurementRow
from workers.job import MEASURING, Job, Kind, Outcome, Status

Make = Callable[..., Any]
SMALL: dict[str, Any] = {"max_candidates": 3, "rungs": "none", "training": {"epochs": 1}}


class Device:
    """Slower by a factor after every reading: the next of `factors`, at last the last one for good."""

    def __init__(self, answer: Callable[[Job, str], Outcome], digest: str, *factors: float) -> None:
        self._answer, self._digest = answer, digest
        self._factors = list(factors)
        self.kinds: list[str] = []

    def __call__(self, job: Job) -> Outcome:
        self.kinds.append(job.kind)
        found = self._answer(job, self._digest)
        if job.kind not in MEASURING:
            return found
        if job.kind == Kind.REFERENCE and len(self._factors) > 1:
            self._factors.pop(0)
        assert found.measurement is not None
        scaled = {
            name: getattr(found.measurement, name) * self._factors[0]
            for name in ("latency_ms", "latency_ms_low", "latency_ms_high")
        }
        return dataclasses.replace(found, measurement=dataclasses.replace(found.measurement, **scaled))


def figures(bench: Any) -> dict[int, list[MeasurementRow]]:
    """Candidate's number -> its measurements, the oldest first."""
    numbers = {row.id: row.number for row in bench.rows(Candidate)}
    found: dict[int, list[MeasurementRow]] = {}
    for row in bench.rows(MeasurementRow):
        if row.candidate_id is not None:
            found.setdefault(numbers[row.candidate_id], []).append(row)
    return found


def readings(bench: Any) -> list[MeasurementRow]:
    return [row for row in bench.rows(MeasurementRow) if row.candidate_id is None]


def events(bench: Any, kind: str) -> list[str]:
    return [row.text for row in bench.rows(Event) if row.kind == kind]


def test_a_steady_device_costs_one_reading_at_the_end_and_changes_nothing(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(**SMALL)
    device = Device(answer, bench.digest, 1.0)
    bench.run(bench.driver(), device)
    assert device.kinds.count(Kind.REFERENCE) == 1
    assert device.kinds[-1] == Kind.REFERENCE
    assert len(readings(bench)) == 1
    assert {number: len(rows) for number, rows in figures(bench).items()} == {-1: 1, 1: 1, 2: 1, 3: 1}
    assert events(bench, "drift") == events(bench, "again") == []


def test_what_was_measured_while_the_device_changed_is_measured_again_and_replaced(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(**SMALL)
    device = Device(answer, bench.digest, 1.0, 1.2)
    bench.run(bench.driver(), device)
    assert len(readings(bench)) == 2, "one shows the change, one that it stayed so"
    for row in bench.rows(Candidate):
        old, new = figures(bench)[row.number]
        assert (old.figures["flags"], new.figures["flags"]) == (["drifted"], [])
        assert row.measured["latency_ms"] == new.figures["latency_ms"] > old.figures["latency_ms"]
        assert row.state == CandidateState.FINISHED
    assert len(events(bench, "again")) == 4
    assert "measured again is what lay between" in events(bench, "drift")[0]
    assert all(job.state == JobState.DONE for job in bench.rows(JobRow))


def test_a_device_that_never_rests_ends_in_flags_and_not_in_an_endless_search(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(**SMALL)
    device = Device(answer, bench.digest, *(1.2**power for power in range(9)))
    bench.run(bench.driver(), device)
    for rows in figures(bench).values():
        assert [row.figures["flags"] for row in rows] == [["drifted"]] * 3
    assert len(events(bench, "drifted")) == 4


def test_a_search_killed_after_every_job_reads_and_measures_no_more_than_one_that_is_not(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(**SMALL)
    device = Device(answer, bench.digest, 1.0, 1.2)
    while bench.run(bench.driver(), device, most=1):
        pass
    assert len(readings(bench)) == 2
    assert {len(rows) for rows in figures(bench).values()} == {2}
    assert len(events(bench, "again")) == 4


def test_a_reading_is_due_after_its_minutes_if_anything_was_measured_and_when_a_search_is_resumed(
    make_bench: Make, answer: Any, monkeypatch: Any
) -> None:
    bench = make_bench(**SMALL)
    driver = bench.driver()
    driver.finish(answer(driver.next_job(), bench.digest))  # the baseline's own figure is the first reading
    real, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    ahead[0] += 31 * 60
    job = driver.next_job()
    assert job.kind != Kind.REFERENCE, "nothing was measured since"
    while job.kind != Kind.MEASURE:
        driver.finish(answer(job, bench.digest))
        job = driver.next_job()
    driver.finish(answer(job, bench.digest))
    ahead[0] += 61
    job = driver.next_job()
    assert job.kind == Kind.REFERENCE
    assert job.settings.cost.energy_seconds == 0
    driver.finish(answer(job, bench.digest))
    assert driver.next_job().kind != Kind.REFERENCE
    ahead[0] += 120
    assert bench.driver().next_job().kind == Kind.REFERENCE


def test_a_drained_search_reads_before_it_rests(make_bench: Make, answer: Any) -> None:
    bench = make_bench(**SMALL)
    driver = bench.driver()
    bench.run(driver, most=3)
    driver.drain("asked to")
    job = driver.next_job()
    assert job.kind == Kind.REFERENCE
    driver.finish(answer(job, bench.digest))
    assert driver.next_job() is Idle.FINISHED


def test_a_reference_that_cannot_be_read_harms_no_candidate_and_ends_the_search_all_the_same(
    make_bench: Make, answer: Any
) -> None:
    def perform(job: Job) -> Outcome:
        found = answer(job, bench.digest)
        if job.kind != Kind.REFERENCE:
            return found
        return dataclasses.replace(found, status=Status.FAILED, reason="no", measurement=None)

    bench = make_bench(**SMALL)
    bench.run(bench.driver(), perform)
    assert {row.state for row in bench.rows(Candidate)} == {CandidateState.FINISHED}
    assert readings(bench) == []


def test_a_candidate_that_is_over_the_limit_by_its_new_figure_is_rejected_before_training_and_stays_after_it(
    make_bench: Make, answer: Any
) -> None:
    """The first is trained when the device is found to be ten times slower; the second only measured."""
    bench = make_bench(**SMALL, constraints={"latency_ms": 11.0}, baselines={})
    driver = bench.driver()
    device = Device(answer, bench.digest, 1.0, 100.0)

    def do(kind: Kind) -> None:
        job = driver.next_job()
        assert job.kind == kind
        driver.finish(device(job))

    do(Kind.MEASURE)
    do(Kind.TRAIN)
    do(Kind.MEASURE)
    driver.drain("asked to")
    do(Kind.REFERENCE)
    assert driver.next_job() is Idle.FINISHED
    driver = bench.driver()
    bench.run(driver, device)
    states = {row.number: row.state for row in bench.rows(Candidate)}
    assert states == {1: "finished", 2: "rejected", 3: "rejected"}
    trained = {
        row.candidate_id for row in bench.rows(JobRow) if row.kind == Kind.TRAIN and row.state == "done"
    }
    assert len(trained) == 1
    assert any("has been trained, stays" in text for text in events(bench, "again"))


def test_a_candidate_rejected_by_a_figure_that_was_wrong_is_taken_up_again(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(**SMALL, constraints={"latency_ms": 11.0}, baselines={})
    device = Device(answer, bench.digest, 100.0, 1.0)
    bench.run(bench.driver(), device)
    rows = bench.rows(Candidate)
    assert {row.state for row in rows} == {CandidateState.FINISHED}
    assert len({row.trial for row in rows}) == 3
    assert max(row.trial for row in rows) >= 3, "under new trials: the old ones were told PRUNED"
    assert len(events(bench, "rejected")) == 3


def test_a_reading_is_never_taken_over_as_a_candidates_figure(make_bench: Make, answer: Any) -> None:
    first = make_bench(**SMALL)
    first.run(first.driver(), Device(answer, first.digest, 1.0, 1.2, 1.44, 1.73, 2.1))
    second = make_bench(**SMALL)
    driver = second.driver()
    assert driver.next_job().kind == Kind.MEASURE, (
        "all figures of the first search are flagged; readings are not"
    )


def test_status_tells_where_the_device_began_and_ended_and_the_report_lists_no_flag_of_what_was_replaced(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(**SMALL)
    bench.run(bench.driver(), Device(answer, bench.digest, 1.0, 1.01))
    with bench.store.read() as reader:
        steady = status(reader, bench.config.name)["drift"]
    first, last = (row.figures["latency_ms"] for row in (figures(bench)[-1][0], *readings(bench)))
    assert steady == f"reference resnet: {first:.3g} ms at the start, {last:.3g} at the end (within 3%)"
    moved = make_bench("moved.db", **SMALL)
    moved.run(moved.driver(), Device(answer, moved.digest, 1.0, 1.2))
    with moved.store.read() as reader:
        told = status(reader, moved.config.name)["drift"]
        data = load(reader, moved.config.name)
    assert "up to 20% between readings; what lay between was measured again" in told
    assert ("Steadiness of the device", [("Readings", told)]) in conditions.conditions(data)
    assert conditions.flagged(data) == []


def test_a_disturbed_reading_tells_nothing(make_bench: Make, answer: Any) -> None:
    bench = make_bench(**SMALL)
    device = Device(answer, bench.digest, 1.0, 2.0)

    def perform(job: Job) -> Outcome:
        found = device(job)
        if job.kind != Kind.REFERENCE:
            return found
        assert found.measurement is not None
        return dataclasses.replace(
            found, measurement=dataclasses.replace(found.measurement, flags=("contended",))
        )

    bench.run(bench.driver(), perform)
    assert {len(rows) for rows in figures(bench).values()} == {1}
    assert "tells nothing" in events(bench, "drift")[0]


def test_where_drift_is_turned_off_nothing_is_read(make_bench: Make, answer: Any) -> None:
    bench = make_bench(**SMALL, cost={"drift_minutes": 0})
    device = Device(answer, bench.digest, 1.0)
    bench.run(bench.driver(), device)
    assert Kind.REFERENCE not in device.kinds
