"""The revision of a search against everything that is shown of it, through whole searches."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from search.candidate_json import candidate_dict
from search.driver import Idle
from search.front import front_view
from search.states import SearchState
from search.status import status_of
from search.store.read import events, revision
from search.store.read.searches import search_by_name
from search.store.write import searches
from workers.job import EpochReport, Job, Kind, Outcome, Status


class Watch:
    """Looks after every step: what is shown, and the revision."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.seen: dict[str, str] = {}
        self.steps = 0
        self.look()

    def look(self) -> None:
        """Two looks that show different things have different revisions."""
        with self.bench.store.read() as reader:
            row = search_by_name(reader, self.bench.config.name)
            view = front_view(reader, row)
            numbers = [point.row.number for point in (*view.baselines, *view.candidates)]
            shown = json.dumps(
                [
                    status_of(reader, row),
                    view.to_dict(all=True),
                    [candidate_dict(reader, row, str(number)) for number in numbers],
                    [event.text for event in events.events(reader, row.id)],
                ]
            )
            found = revision.revision(reader, row)
            assert revision.revisions(reader)[row.name] == found
        assert self.seen.setdefault(found, shown) == shown
        self.steps += 1


def train_reports(job: Job) -> list[EpochReport]:
    if job.kind != Kind.TRAIN:
        return []
    return [
        EpochReport(job.id, job.attempt, job.lease, epoch, 1.0, 1.0, 0.5, 0.4, 0.6, 1e-3, 0.1)
        for epoch in range(job.first_epoch, job.last_epoch + 1)
    ]


def run(bench: Any, watch: Watch, answer: Callable[[Job, str], Outcome], most: int = 1000) -> None:
    driver = bench.driver()
    watch.look()
    for _ in range(most):
        job = driver.next_job()
        watch.look()
        if isinstance(job, Idle):
            return
        for report in train_reports(job):
            driver.progress(report)
            watch.look()
        driver.finish(answer(job, bench.digest))
        watch.look()


def sometimes_failing(answer: Callable[[Job, str], Outcome]) -> Callable[[Job, str], Outcome]:
    """Every fifth job fails by its candidate's own fault, every seventh is lost with its worker."""

    def perform(job: Job, digest: str) -> Outcome:
        common: dict[str, Any] = {"job": job.id, "attempt": job.attempt, "lease": job.lease}
        if job.id % 5 == 0:
            return Outcome(**common, status=Status.FAILED, reason="loss is not finite", host="here", pid=1)
        if job.id % 7 == 0 and job.attempt == 1:
            return Outcome(**common, status=Status.ERROR, reason="its process ended")
        return answer(job, digest)

    return perform


@pytest.mark.parametrize("wrap", [lambda answer: answer, sometimes_failing], ids=["smooth", "failing"])
def test_nothing_that_is_shown_changes_without_the_revision(make_bench: Any, answer: Any, wrap: Any) -> None:
    bench = make_bench(constraints={"latency_ms": 8.0}, max_candidates=8)
    watch = Watch(bench)
    run(bench, watch, wrap(answer))
    assert watch.steps > 60
    assert len(watch.seen) > 40


def test_an_interruption_and_going_on_change_the_revision(make_bench: Any, answer: Any) -> None:
    bench = make_bench(max_candidates=8)
    watch = Watch(bench)
    run(bench, watch, answer, most=6)
    before = len(watch.seen)

    def forget_the_driver(session: Any) -> None:
        row = searches.locked(session, bench.search_id)
        assert row.state == SearchState.RUNNING
        row.owner_pid = 2**22 + 1  # no process has that number

    bench.store.write(forget_the_driver)
    watch.look()
    assert len(watch.seen) == before + 1
    run(bench, watch, answer)
    with bench.store.read() as reader:
        assert search_by_name(reader, bench.config.name).state == SearchState.FINISHED


def test_a_beat_of_the_driver_and_another_search_leave_the_revision_as_it_is(make_bench: Any) -> None:
    first, second = make_bench(), make_bench()

    def found() -> str:
        with first.store.read() as reader:
            return revision.revision(reader, search_by_name(reader, first.config.name))

    driver = first.driver()
    before = found()
    driver.beat()
    assert found() == before
    second.run(second.driver(), most=5)
    assert found() == before
    first.run(driver, most=1)
    assert found() != before
