"""Requests to a search, with its driver at work, between two drivers, and after one that died."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from search import lease, requests
from search.driver import Idle
from search.errors import UserError
from search.requests import Ask, Asked
from search.states import AttemptState, CandidateState, JobState, SearchState
from search.store.models import Attempt, Candidate, Event, JobRow, Request, Search
from search.store.write.searches import LeaseLost
from workers.job import Decision, EpochReport, Job, Kind, Outcome, Status

Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def every_look_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search.driver._BEAT_SECONDS", 0.0)


def search(bench: Any) -> Search:
    return bench.store.write(lambda s: s.get(Search, bench.search_id))


def ask(bench: Any, kind: Ask, **more: Any) -> str | None:
    return bench.store.write(lambda s: requests.ask(s, bench.config.name, Asked(kind, **more)))


def events(bench: Any) -> list[str]:
    return [row.text for row in bench.rows(Event)]


def report(job: Job, epoch: int) -> EpochReport:
    return EpochReport(job.id, job.attempt, job.lease, epoch, 1.0, 1.0, 0.5, 0.4, 0.6, 1e-3, 0.1)


def first_training(bench: Any, driver: Any, answer: Any) -> Job:
    """Of a candidate; what comes before it is done."""
    while (job := driver.next_job()).kind != Kind.TRAIN or job.candidate < 1:
        driver.finish(answer(job, bench.digest))
    return job


def forget_driver(bench: Any) -> None:
    """As if the driver had been a process that has died."""

    def work(session: Any) -> None:
        row = session.get(Search, bench.search_id)
        row.owner_pid, row.owner_started = 2**22 + 1, 1.0

    bench.store.write(work)


def stopped(job: Job, answer: Any, digest: str) -> Outcome:
    found = answer(job, digest)
    fields = {name: getattr(found, name) for name in ("checkpoint", "evaluation", "data_digest", "device_id")}
    return Outcome(
        job.id, job.attempt, job.lease, Status.STOPPED, epoch=job.first_epoch, host="here", pid=1, **fields
    )


def test_a_pause_ends_trainings_with_their_epoch_and_nothing_new_starts(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench()
    driver = bench.driver()
    job = first_training(bench, driver, answer)
    assert driver.progress(report(job, job.first_epoch)) is Decision.CONTINUE
    assert "pauses" in (ask(bench, Ask.PAUSE, text="the machine is needed") or "")
    assert driver.progress(report(job, job.first_epoch + 1)) is Decision.STOP
    assert search(bench).state == SearchState.DRAINING
    assert driver.next_job() is Idle.WAIT
    driver.finish(stopped(job, answer, bench.digest))
    assert driver.next_job() is Idle.FINISHED
    driver.close()
    assert (search(bench).state, search(bench).reason) == (
        SearchState.PAUSED,
        "paused on request: the machine is needed",
    )
    assert all(row.done for row in bench.rows(Request))
    again = bench.driver()
    bench.run(again)
    assert search(bench).state == SearchState.FINISHED
    assert len([row for row in bench.rows(Candidate) if row.number > 0]) == 12


def test_a_stop_lets_running_jobs_end_and_ends_the_search(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    driver = bench.driver()
    job = first_training(bench, driver, answer)
    ask(bench, Ask.STOP)
    assert driver.progress(report(job, job.first_epoch)) is Decision.CONTINUE
    driver.finish(answer(job, bench.digest))
    while isinstance(left := driver.next_job(), Job):
        assert left.kind is Kind.REFERENCE  # how steady the device was to the end
        driver.finish(answer(left, bench.digest))
    assert left is Idle.FINISHED
    assert (search(bench).state, search(bench).reason) == (SearchState.STOPPED, "stopped on request")
    assert search(bench).ended is not None
    assert {row.state for row in bench.rows(JobRow)} <= {JobState.DONE, JobState.CANCELLED}
    mine = [row for row in bench.rows(Candidate) if row.number > 0]
    assert {row.state for row in mine} == {CandidateState.STOPPED}
    assert all(row.told for row in mine)


def test_a_second_stop_may_hasten_the_first(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    driver = bench.driver()
    job = first_training(bench, driver, answer)
    ask(bench, Ask.STOP)
    assert driver.progress(report(job, job.first_epoch)) is Decision.CONTINUE
    ask(bench, Ask.STOP, now=True)
    assert driver.progress(report(job, job.first_epoch + 1)) is Decision.STOP


def test_a_resume_takes_a_pause_back_while_the_driver_drains(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    driver = bench.driver()
    job = first_training(bench, driver, answer)
    ask(bench, Ask.PAUSE)
    assert driver.next_job() is Idle.WAIT
    assert "goes on" in (ask(bench, Ask.RESUME) or "")
    assert isinstance(driver.next_job(), Job)
    assert search(bench).state == SearchState.RUNNING
    assert driver.progress(report(job, job.first_epoch)) is Decision.CONTINUE
    assert all(row.done for row in bench.rows(Request))


def test_no_request_undoes_a_drain_of_the_drivers_own(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    driver = bench.driver()
    first_training(bench, driver, answer)
    driver.drain_wanted = "drained by a signal"
    driver.beat()
    ask(bench, Ask.RESUME)
    assert driver.next_job() is Idle.WAIT
    assert (search(bench).state, search(bench).reason) == (SearchState.DRAINING, "drained by a signal")


def test_notes_become_events_and_what_is_not_known_is_told_and_settled(make_bench: Make) -> None:
    bench = make_bench()
    driver = bench.driver()
    ask(bench, Ask.NOTE, text="the fan is loud")
    bench.store.write(
        lambda s: s.add(Request(search_id=bench.search_id, kind="dance", payload={}, created=1.0))
    )
    driver.beat()
    assert "the fan is loud" in events(bench)
    assert any("'dance'" in text for text in events(bench))
    assert all(row.done for row in bench.rows(Request))
    assert search(bench).state == SearchState.RUNNING


def test_with_the_driver_dead_a_pause_is_settled_at_once_and_nothing_stays_running(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench()
    driver = bench.driver()
    job = first_training(bench, driver, answer)
    forget_driver(bench)
    assert ask(bench, Ask.PAUSE) == f"search {bench.config.name!r} is paused"
    assert search(bench).state == SearchState.PAUSED
    assert [row.state for row in bench.rows(Attempt)][-1] == AttemptState.LOST
    assert JobState.RUNNING not in {row.state for row in bench.rows(JobRow)}
    with pytest.raises(LeaseLost):
        driver.finish(answer(job, bench.digest))


def test_with_the_driver_dead_a_stop_is_settled_and_the_search_can_still_go_on_later(
    make_bench: Make, answer: Any
) -> None:
    from search.store.write import searches

    bench = make_bench()
    first_training(bench, bench.driver(), answer)
    forget_driver(bench)
    assert ask(bench, Ask.STOP) == f"search {bench.config.name!r} is stopped"
    assert {row.state for row in bench.rows(Candidate) if row.number > 0} == {CandidateState.STOPPED}
    with pytest.raises(UserError, match="is stopped; there is nothing to pause"):
        ask(bench, Ask.PAUSE)
    again = bench.driver(
        prepare=lambda s: searches.reconfigure(s, bench.search_id, bench.config.to_dict(), None)
    )
    bench.run(again)
    assert search(bench).state == SearchState.FINISHED
    assert CandidateState.FINISHED in {row.state for row in bench.rows(Candidate)}


def test_a_driver_of_another_host_is_never_taken_for_dead_by_who_asks(make_bench: Make) -> None:
    bench = make_bench()
    bench.driver()

    def elsewhere(session: Any) -> None:
        row = session.get(Search, bench.search_id)
        row.owner_host, row.beat_time = "elsewhere", 1.0

    bench.store.write(elsewhere)
    assert "silent" in (ask(bench, Ask.STOP) or "")
    assert search(bench).state == SearchState.RUNNING
    assert [row.done for row in bench.rows(Request)] == [None]


def test_who_starts_a_driver_wants_the_search_to_go_on(make_bench: Make) -> None:
    bench = make_bench()
    bench.driver()
    ask(bench, Ask.STOP)
    again = bench.driver()
    assert isinstance(again.next_job(), Job)
    assert search(bench).state == SearchState.RUNNING


def test_a_search_that_has_ended_cannot_be_paused_and_an_unknown_one_is_named(make_bench: Make) -> None:
    bench = make_bench(max_candidates=1)
    bench.run(bench.driver())
    assert lease.this_process().pid == os.getpid() == psutil.Process().pid
    for kind in (Ask.PAUSE, Ask.STOP):
        with pytest.raises(UserError, match="is finished"):
            ask(bench, kind)
    with pytest.raises(UserError, match="no search 'unknown'"):
        bench.store.write(lambda s: requests.ask(s, "unknown", Asked(Ask.PAUSE)))
