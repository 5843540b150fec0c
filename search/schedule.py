"""What a driver knows of time and budgets: which jobs run and since when, how long jobs took, and so what still fits.

All of it comes from the database and the jobs' own reports, so that a new driver knows the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy.orm import Session

from search import budget
from search.budget import Budget
from search.clock import CLOCK, Clock
from search.lengths import Length, Lengths, Work
from search.plan import Plan
from search.planner import Planner
from search.rungs import Standing
from search.spending import Spending
from search.store.models import Candidate, JobRow, Search
from search.store.write import jobs
from workers.job import EpochReport, Job, Kind, Outcome, Status

_FACTOR = 10.0
_SHORTEST = 600.0
"""A job is overdue after so many times what it was to take at most, and never within so many seconds."""


@dataclass(frozen=True)
class _Known:
    """Of a candidate. epoch: epochs completed."""

    family: str
    flops: float | None
    epoch: int


@dataclass(frozen=True)
class _Running:
    """A job that was dispatched. since: on a clock that nobody sets. epoch: the last one reported."""

    work: Work
    since: float
    length: Length | None
    epoch: int
    last_epoch: int


@dataclass
class Schedule:
    """Of one driver.

    rungs: cumulative epochs. deadline: UTC seconds. workers: jobs at a time. job_seconds: the longest that any job may
    take. checkpoint_seconds: after which a training is broken at an epoch's end, and goes on from its checkpoint.
    """

    rungs: tuple[int, ...]
    spending: Spending
    limits: Budget = field(default_factory=Budget)
    deadline: float | None = None
    workers: int = 1
    job_seconds: float = math.inf
    checkpoint_seconds: float = math.inf
    clock: Clock = CLOCK
    _known: dict[int, _Known] = field(default_factory=dict)
    _running: dict[tuple[int, int], _Running] = field(default_factory=dict)
    lengths: Lengths = field(default_factory=Lengths)

    @classmethod
    def of(
        cls,
        plan: Plan,
        artifacts: Path,
        deadline: float | None = None,
        workers: int = 1,
        joules: Callable[[], float] | None = None,
        clock: Clock = CLOCK,
    ) -> Schedule:
        """As a search's plan says. artifacts: its folder. joules: a counter of the device's energy."""
        return cls(
            rungs=plan.rungs,
            spending=Spending(artifacts, joules, clock),
            limits=Budget.of(dict(plan.config.budget)),
            deadline=deadline,
            workers=workers,
            job_seconds=plan.settings.limits.job_seconds,
            checkpoint_seconds=60 * plan.settings.limits.checkpoint_minutes,
            clock=clock,
        )

    # -- what is learnt -----------------------------------------------------------------------------------------

    def begin(self, session: Session, search: Search) -> None:
        """Takes up what earlier drivers spent, and how long the jobs took that they saw done."""
        self.spending.begin(session, search)
        search.data = {**search.data, "workers": self.workers}
        self.lengths = Lengths(
            tuple(
                (Work(Kind(job.kind), row.number, row.family, _flops(row), epochs), seconds)
                for job, row, epochs, seconds in jobs.lengths(session, search.id)
            )
        )

    def look_at(self, row: Candidate) -> None:
        self._known[row.number] = _Known(row.family, _flops(row), row.epoch)

    def started(self, job: Job) -> None:
        work = self._work(job.kind, job.candidate, _epochs(job))
        length = self.lengths.predict(work)
        epoch = max(0, job.first_epoch - 1)
        self._running[job.id, job.attempt] = _Running(
            work, self.clock.monotonic(), length, epoch, job.last_epoch
        )

    def ended(self, outcome: Outcome) -> None:
        """A job ended, and said so."""
        running = self._running.pop((outcome.job, outcome.attempt), None)
        if running is None:
            return
        self.spending.job_ended(outcome.seconds)
        self.spending.epochs_ended(sum(report.epoch > running.epoch for report in outcome.epochs))
        if outcome.status in (Status.DONE, Status.STOPPED) and outcome.seconds > 0:
            work = replace(running.work, epochs=len(outcome.epochs))
            self.lengths = Lengths((*self.lengths.done, (work, outcome.seconds)))

    def broken_off(self, job: int, attempt: int) -> None:
        """A job ended otherwise: nothing is learnt from that, but it has cost what it took."""
        running = self._running.pop((job, attempt), None)
        if running is not None:
            self.spending.job_ended(self.clock.monotonic() - running.since)

    # -- what follows -------------------------------------------------------------------------------------------

    def why_over(self, *, nothing_fits: bool = False) -> str | None:
        """Why nothing more may run; None where something may.

        nothing_fits: nothing was found to run, and it was not for want of candidates.
        """
        if self.deadline is not None and self.clock.now() >= self.deadline:
            return "the deadline has passed"
        spent = budget.used_up(self.limits, self._spent())
        is_limited = self.deadline is not None or self.limits != Budget()
        return spent or ("no time was left for more" if nothing_fits and is_limited else None)

    def fits(self, number: int, rung: int) -> bool:
        """Whether there is time, and budget, to train a candidate on to a rung."""
        return self._bounded(self._epochs_to(number, rung), lambda: self.predict(number, rung))

    def may_start(self, job: JobRow, candidate: Candidate) -> bool:
        """Whether there is time and budget for a job."""
        work = self._work(Kind(job.kind), candidate.number, _epochs(job))
        return self._bounded(work.epochs, lambda: self.lengths.predict(work))

    def fits_newcomer(self) -> bool:
        """Whether there is time to measure a candidate that is not there yet, and to train it to the first rung."""
        return self._bounded(self.rungs[0], self._newcomer)

    def predict(self, number: int, rung: int) -> Length | None:
        """How long it takes to train a candidate on to a rung."""
        return self.lengths.predict(self._work(Kind.TRAIN, number, self._epochs_to(number, rung)))

    def closes(self, standings: Collection[Standing], num_objectives: int) -> bool:
        """Whether from now on the time is needed for what has earned, or will earn, another rung."""
        return self._planner.closes(
            self.clock.now(), standings, len(self.rungs), num_objectives, self.predict, self._still_to_run()
        )

    def progressed(self, report: EpochReport) -> bool:
        """Counts an epoch. True when its training has to end with it."""
        self.spending.epochs_ended(1)
        key = report.job, report.attempt
        running = self._running.get(key)
        if running is None:
            return False
        self._running[key] = replace(running, epoch=report.epoch)
        if report.epoch >= running.last_epoch:
            return False
        if self.clock.monotonic() - running.since > self.checkpoint_seconds:
            return True
        late = self._planner.must_stop(report.seconds + report.pause_seconds, self.clock.now())
        return late or budget.used_up(self.limits, self._spent()) is not None

    def overdue(self) -> list[tuple[int, int]]:
        """(job, attempt) of those that have outlasted what a job may take, or the end of the search."""
        late, now = self._planner.is_overdue(self.clock.now()), self.clock.monotonic()
        return [key for key, job in self._running.items() if late or now - job.since > self._most(job.length)]

    def why_overdue(self, job: int, attempt: int) -> str:
        """In words, naming the setting where it was one that ended it."""
        running = self._running.get((job, attempt))
        if running is None or self._planner.is_overdue(self.clock.now()):
            return "still ran when the search had to end"
        most = self._most(running.length)
        if most < self.job_seconds:
            return f"took over {most:g} s, ten times what was foreseen at most"
        return f"took over {most:g} s, the most that limits.job_seconds lets a job take"

    @property
    def _planner(self) -> Planner:
        seconds = budget.seconds_left(self.limits, self._spent(), self.workers)
        ends = [
            end for end in (self.deadline, self.clock.now() + seconds) if end is not None and end < math.inf
        ]
        return Planner(min(ends, default=None), self.workers)

    def _spent(self) -> budget.Spent:
        now = self.clock.monotonic()
        running = [now - job.since for job in self._running.values()]
        return self.spending.now(running, weighs=self.limits.disk_gb < math.inf)

    def _epochs_to(self, number: int, rung: int) -> int:
        return self.rungs[rung] - (self._known[number].epoch if number in self._known else 0)

    def _bounded(self, epochs: int, predict: Callable[[], Length | None]) -> bool:
        if epochs and epochs + self._epochs_under_way() > budget.epochs_left(self.limits, self._spent()):
            return False
        planner = self._planner
        return planner.end is None or planner.fits(predict(), self.clock.now())

    def _epochs_under_way(self) -> int:
        """Of the running jobs, those not reported yet."""
        return sum(job.last_epoch - job.epoch for job in self._running.values() if job.last_epoch)

    def _newcomer(self) -> Length | None:
        measure = self.lengths.predict(Work(Kind.MEASURE, 0, ""))
        train = self.lengths.predict(Work(Kind.TRAIN, 0, "", epochs=self.rungs[0]))
        if measure is None or train is None:
            return None
        return Length(measure.seconds + train.seconds, measure.low + train.low, measure.high + train.high)

    def _still_to_run(self) -> list[float]:
        now = self.clock.monotonic()
        return [
            max(0.0, job.length.seconds - (now - job.since)) for job in self._running.values() if job.length
        ]

    def _most(self, length: Length | None) -> float:
        predicted = self.job_seconds if length is None else max(_SHORTEST, _FACTOR * length.high)
        return min(self.job_seconds, predicted)

    def _work(self, kind: Kind, number: int, epochs: int) -> Work:
        known = self._known.get(number)
        family, flops = (known.family, known.flops) if known else ("", None)
        return Work(kind, number, family, flops, epochs)


def _epochs(job: JobRow | Job) -> int:
    return job.last_epoch - job.first_epoch + 1 if job.last_epoch else 0


def _flops(row: Candidate) -> float | None:
    flops = row.analysis.get("flops")
    return float(flops) if flops else None
