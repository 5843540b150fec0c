"""A driver whose jobs go to machines of which one fails them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from search.driver import Idle
from search.states import CandidateState, SearchState
from search.store.models import Candidate, Event, Search
from workers.job import Job, Outcome, Status

Make = Callable[..., Any]


def broken(job: Job, answer: Any, digest: str, host: str = "bad") -> Outcome:
    made = answer(job, digest)
    return Outcome(
        job=made.job,
        attempt=made.attempt,
        lease=made.lease,
        status=Status.ERROR,
        reason="CUDA error",
        host=host,
        pid=1,
        device_id=made.device_id,
        seconds=0.1,
    )


def run_on_two(bench: Any, driver: Any, answer: Any) -> list[str]:
    """Every second job goes to the machine that fails all, as long as it gets any. Returns where the jobs went."""
    driver.hosts = lambda: ["good", "bad"]
    went = []
    while isinstance(job := driver.next_job(), Job):
        host = "bad" if len(went) % 2 and "bad" not in driver.quarantine.hosts else "good"
        went.append(host)
        whole = dataclasses.replace(answer(job, bench.digest), host="good")
        driver.finish(broken(job, answer, bench.digest) if host == "bad" else whole)
    assert job is Idle.FINISHED
    return went


def test_a_machine_that_fails_two_jobs_gets_no_more_and_the_search_goes_on_on_the_other(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(max_candidates=3, baselines={})
    went = run_on_two(bench, bench.driver(), answer)
    assert went.count("bad") == 2
    (search,) = bench.rows(Search)
    assert search.state == SearchState.FINISHED
    assert not [row for row in bench.rows(Candidate) if row.state == CandidateState.FAILED]
    told = [event.text for event in bench.rows(Event) if event.kind == "quarantined"]
    assert len(told) == 1
    assert told[0].startswith("bad (")


def test_what_the_machine_in_quarantine_failed_does_not_count_as_tried(make_bench: Make, answer: Any) -> None:
    bench = make_bench(max_candidates=2, baselines={}, limits={"max_attempts": 1})
    driver = bench.driver()
    driver.hosts = lambda: ["good", "bad"]
    first = driver.next_job()
    driver.finish(broken(first, answer, bench.digest))
    second = driver.next_job()
    assert second.id != first.id, "another job tells whose fault it was"
    driver.lost(second.id, second.attempt, "its worker died", host="bad")
    assert list(driver.quarantine.hosts) == ["bad"]
    bench.run(driver)
    assert not [row for row in bench.rows(Candidate) if row.state == CandidateState.FAILED]


def test_when_every_machine_fails_the_search_rests_with_the_reason_and_a_resume_tries_all_again(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(max_candidates=3, baselines={}, limits={"max_attempts": 1})
    driver = bench.driver()
    driver.hosts = lambda: ["good", "bad"]
    while isinstance(job := driver.next_job(), Job):
        host = "good" if driver.quarantine.hosts else "bad"
        driver.finish(broken(job, answer, bench.digest, host))
    assert list(driver.quarantine.hosts) == ["bad"]
    (search,) = bench.rows(Search)
    assert search.state == SearchState.PAUSED
    assert "CUDA error" in search.reason
    driver.close()
    again = bench.driver()
    assert not again.quarantine.hosts
    bench.run(again)
    (search,) = bench.rows(Search)
    assert search.state == SearchState.FINISHED
