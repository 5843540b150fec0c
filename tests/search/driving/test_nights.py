"""A deadline is kept and the time before it used: nights that are simulated, with the real driver on a clock of its own
and workers whose jobs take what recorded jobs took."""

from __future__ import annotations

import heapq
import itertools
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from search.clock import Clock
from search.driver import Driver, Idle
from search.states import AttemptState, CandidateState, SearchState
from search.store.models import Candidate, JobRow, Search
from workers.job import Decision, EpochReport, Job, Kind, Outcome, Status

RECORDED = json.loads((Path(__file__).parent / "job_lengths.json").read_text())
"""Jobs of two real searches on Fashion-MNIST, over all families: kind, family, flops, epochs, seconds."""
START = 1_800_000_000.0
LARGER = 10
"""As many times the images of those searches, so that a night has about a hundred jobs."""

_SLOPE = 0.7
"""Seconds grow with such a power of the FLOPs between a recorded network and one near it."""


def seconds_of(kind: Kind, family: str, flops: float | None) -> float:
    """Of an epoch, or of another job: those of the recorded network that is nearest, brought to these FLOPs."""
    kind = kind if kind == Kind.TRAIN else Kind.MEASURE
    same = [each for each in RECORDED if each["kind"] == kind and each["flops"]]
    known = [each for each in same if each["family"] == family] or same
    if not flops:
        known = sorted(known, key=lambda each: each["seconds"])
        middle = known[len(known) // 2]
        return middle["seconds"] / max(1, middle["epochs"])
    nearest = min(known, key=lambda each: abs(math.log(each["flops"] / flops)))
    base = nearest["seconds"] / max(1, nearest["epochs"])
    return base if kind == Kind.MEASURE else LARGER * base * (flops / nearest["flops"]) ** _SLOPE


@dataclass
class Night:
    """workers: jobs at a time. off_by: jobs take up to such a share more or less than was recorded.

    kills: share of the jobs whose worker dies. broken: workers whose device fails every job from some time on.
    answer: what a worker says of a job. flops: of candidates, by number.
    """

    seconds: float
    workers: int
    answer: Callable[[Job], Outcome]
    off_by: float = 0.0
    kills: float = 0.0
    seed: int = 0
    now: float = START
    busy: float = 0.0
    ended: float = 0.0
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: Any = field(default_factory=itertools.count)
    _free: int = 0
    _over: set[tuple[int, int]] = field(default_factory=set)
    _began: dict[tuple[int, int], float] = field(default_factory=dict)

    @property
    def deadline(self) -> float:
        return START + self.seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, lambda: self.now)

    @property
    def used(self) -> float:
        """Share of the allowed worker time that was spent in jobs."""
        return self.busy / (self.workers * self.seconds)

    def run(self, driver: Driver, flops: Callable[[int], tuple[str, float | None]]) -> None:
        """Until the driver has finished. Raises AssertionError when it waits for nothing."""
        self._driver, self._flops, self._draw = driver, flops, random.Random(self.seed)
        self._free = self.workers
        while True:
            idle = self._hand_out()
            if idle is Idle.FINISHED:
                self.ended = self.now
                return
            if not self._events:
                raise AssertionError("the driver waits, and nothing runs")
            tick = self.now + 1.0 if self._free else math.inf
            if self._events[0][0] > tick:
                self.now = tick
            else:
                self.now, _, happens = heapq.heappop(self._events)
                happens()
            for key in driver.schedule.overdue():
                self._end(key)
                driver.lost(*key, "took longer than a job may", AttemptState.FENCED)

    def _hand_out(self) -> Idle | None:
        while self._free:
            job = self._driver.next_job()
            if isinstance(job, Idle):
                return job
            self._free -= 1
            self._start(job)
        return None

    def _start(self, job: Job) -> None:
        key = job.id, job.attempt
        self._began[key] = self.now
        family, flops = self._flops(job.candidate)
        pace = seconds_of(job.kind, family, flops) * self._draw.uniform(1 - self.off_by, 1 + self.off_by)
        if self._draw.random() < self.kills:
            self._at(pace * self._draw.random(), key, lambda: self._die(job))
        elif job.kind == Kind.TRAIN:
            self._epoch(job, job.first_epoch, pace)
        else:
            self._at(pace, key, lambda: self._finish(job, self.answer(job)))

    def _epoch(self, job: Job, epoch: int, pace: float) -> None:
        seconds = pace * self._draw.uniform(0.9, 1.1)
        self._at(seconds, (job.id, job.attempt), lambda: self._reported(job, epoch, pace, seconds))

    def _reported(self, job: Job, epoch: int, pace: float, seconds: float) -> None:
        told = replace(self.answer(replace(job, last_epoch=epoch)), status=Status.STOPPED)
        report: EpochReport = replace(told.epochs[-1], seconds=seconds)
        decision = self._driver.progress(report)
        if epoch == job.last_epoch:
            self._finish(job, self.answer(job))
        elif decision is Decision.STOP:
            self._finish(job, told)
        else:
            self._epoch(job, epoch + 1, pace)

    def _finish(self, job: Job, outcome: Outcome) -> None:
        self._driver.finish(replace(outcome, seconds=self._end((job.id, job.attempt))))

    def _die(self, job: Job) -> None:
        self._end((job.id, job.attempt))
        self._driver.lost(job.id, job.attempt, "its worker died")

    def _at(self, seconds: float, key: tuple[int, int], happens: Callable[[], None]) -> None:
        def unless_over() -> None:
            if key not in self._over:
                happens()

        heapq.heappush(self._events, (self.now + seconds, next(self._order), unless_over))

    def _end(self, key: tuple[int, int]) -> float:
        """Frees the job's worker; returns how long it took."""
        self._over.add(key)
        self._free += 1
        began = self._began[key]
        self.busy += min(self.now, self.deadline) - min(began, self.deadline)
        return self.now - began


Make = Callable[..., Any]
LATE_SECONDS = 60


def night_of(bench: Any, answer: Any, seed: int) -> Night:
    """A night of an hour to three, with one worker to four, jobs off by up to half and a death now and then."""
    draw = random.Random(seed)
    night = Night(
        seconds=draw.uniform(1, 3) * 3600,
        workers=draw.choice([1, 2, 2, 3, 4]),
        answer=lambda job: answer(job, bench.digest),
        off_by=draw.uniform(0, 0.5),
        kills=draw.choice([0, 0.02, 0.05]),
        seed=seed,
    )
    made = {"deadline": night.deadline, "num_workers": night.workers, "clock": night.clock}
    driver = bench.driver(made)
    facts: dict[int, tuple[str, float | None]] = {}

    def flops(number: int) -> tuple[str, float | None]:
        if number not in facts:
            row = next(row for row in bench.rows(Candidate) if row.number == number)
            facts[number] = row.family, row.analysis.get("flops")
        return facts[number]

    night.run(driver, flops)
    driver.close()
    return night


def slept(make_bench: Make, answer: Any, seed: int) -> Night:
    """A night after which everything is in order."""
    bench = make_bench(
        db=f"{seed}.db", max_candidates="none", deadline="8h", seed=seed, sampler="auto", workers=4
    )
    night = night_of(bench, answer, seed)
    search = bench.rows(Search)[0]
    assert search.state == SearchState.FINISHED, search.reason
    assert night.ended <= night.deadline + LATE_SECONDS
    assert not [job for job in bench.rows(JobRow) if job.state in ("running", "pending")]
    finished = [row for row in bench.rows(Candidate) if row.state == CandidateState.FINISHED]
    assert len([row for row in finished if row.number > 0]) >= 2
    assert night.now >= START
    return night


def test_two_nights_end_in_time_with_a_front_and_most_of_their_time_used(
    make_bench: Make, answer: Any
) -> None:
    used = [slept(make_bench, answer, seed).used for seed in range(2)]
    assert median(used) >= 0.9, used
    assert min(used) >= 0.8, used


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_two_hundred_nights(make_bench: Make, answer: Any) -> None:
    used = []
    for seed in range(200):
        used.append(slept(make_bench, answer, 1000 + seed).used)
        print(f"night {seed}: {used[-1]:.3f} of its worker time used", flush=True)
    print(f"median {median(used):.3f}, worst {min(used):.3f}")
    assert median(used) >= 0.9
    assert min(used) >= 0.8
