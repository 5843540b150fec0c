"""Trainings that are long are broken at epochs' ends, so that little is lost with a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from search.clock import Clock
from search.driver import Driver
from search.states import AttemptState, CandidateState
from search.store.models import Attempt, Candidate, Epoch
from workers.job import Decision, Job, Kind, Outcome, Status

Make = Callable[..., Any]
MINUTES = 4


class Slow:
    """A worker whose epochs take MINUTES each, on a clock of its own."""

    def __init__(self, bench: Any, answer: Any) -> None:
        self.now = 1_800_000_000.0
        self.clock = Clock(lambda: self.now, lambda: self.now)
        self._bench, self._answer = bench, answer

    def perform(self, driver: Driver, job: Job) -> Outcome:
        whole = self._answer(job, self._bench.digest)
        if job.kind != Kind.TRAIN:
            return whole
        for epoch in range(job.first_epoch, job.last_epoch + 1):
            self.now += 60 * MINUTES
            so_far = self._answer(replace(job, last_epoch=epoch), self._bench.digest)
            decision = driver.progress(replace(so_far.epochs[-1], seconds=60.0 * MINUTES))
            if decision is Decision.STOP:
                status = Status.STOPPED if epoch < job.last_epoch else Status.DONE
                return replace(so_far, status=status)
        return whole


def test_no_attempt_is_much_longer_than_the_time_between_checkpoints(make_bench: Make, answer: Any) -> None:
    """Attempts at a training of 9 epochs of 4 minutes end after 12, the first end of an epoch past 10."""
    bench = make_bench(max_candidates=3, rungs="none", limits={"checkpoint_minutes": 10})
    slow = Slow(bench, answer)
    driver = bench.driver({"clock": slow.clock})
    bench.run(driver, lambda job: slow.perform(driver, job))
    rows = [row for row in bench.rows(Candidate) if row.number > 0]
    assert {row.state for row in rows} == {CandidateState.FINISHED}
    by_attempt: dict[int, list[int]] = {}
    for row in bench.rows(Epoch):
        by_attempt.setdefault(row.attempt_id, []).append(row.epoch)
    assert {len(epochs) for epochs in by_attempt.values()} == {3}
    for row in rows:
        mine = sorted(epoch.epoch for epoch in bench.rows(Epoch) if epoch.candidate_id == row.id)
        assert mine == list(range(1, 10))


def test_a_lost_worker_costs_the_epochs_since_the_last_checkpoint_and_no_try_for_each_of_them(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(max_candidates=1, rungs="none", limits={"checkpoint_minutes": 10, "max_attempts": 2})
    slow = Slow(bench, answer)
    driver = bench.driver({"clock": slow.clock})
    lost = False

    def perform(job: Job) -> Outcome:
        nonlocal lost
        if job.kind == Kind.TRAIN and job.candidate > 0 and job.first_epoch == 7 and not lost:
            lost = True
            driver.lost(job.id, job.attempt, "its worker died")
            again = driver.next_job()
            assert isinstance(again, Job)
            assert (again.id, again.first_epoch) == (job.id, 7)
            return slow.perform(driver, again)
        return slow.perform(driver, job)

    bench.run(driver, perform)
    assert lost
    states = [row.state for row in bench.rows(Attempt)]
    assert states.count(AttemptState.LOST) == 1
    finished = next(row for row in bench.rows(Candidate) if row.number == 1)
    assert (finished.state, finished.epoch) == (CandidateState.FINISHED, 9)
