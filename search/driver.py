"""The only place where a search changes: what to do next, and what became of it.

An engine calls `next_job`, `progress`, `finish` and `lost`. Each first writes to the database under the lease, then
tells Optuna, then decides; nothing is remembered here that a new driver could not read back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeVar

from sqlalchemy.orm import Session

from search import ending, extending, hints, lease, planning, reconcile, requests
from search.clock import CLOCK, Clock
from search.deciding import Promote, Propose, next_step
from search.dispatch import Dispatcher
from search.drifting import Drifting
from search.errors import UserError
from search.ledger import Ledger
from search.memory import Memory
from search.parking import Parking
from search.plan import Plan
from search.proposing import promote, propose
from search.quarantine import Quarantine, Tried
from search.room import Room
from search.sampler import Exhausted
from search.schedule import Schedule
from search.screening import Screen
from search.settle import Settled, Settler
from search.states import AttemptState, SearchState
from search.store.models import Candidate, JobRow, Search
from search.store.session import Store
from search.store.write import candidates, jobs, results, searches
from search.store.write import requests as rows_of_requests
from search.study import Study
from spaces.dims import SpaceError
from workers.job import Decision, EpochReport, Job, Outcome

T = TypeVar("T")
_BEAT_SECONDS = 3.0


class Idle(Enum):
    """What `next_job` says when there is no job."""

    WAIT = "wait"
    FINISHED = "finished"


@dataclass
class Driver:
    """Drives one search from `start` to `close`.

    device_id: the device that its measurements come from. deadline: UTC seconds. num_workers: jobs at a time.
    joules: a counter of the device's energy, for a budget.
    drain_wanted: set to a reason (by a signal handler, which may not write), it drains at the next call.
    wanted: what the open requests come to. hosts: gives those that jobs can go to, where there may be several.
    on_event: told in words what happens; on_status: how far the search is, after every change.
    """

    store: Store
    study: Study
    search_id: int
    name: str
    plan: Plan
    device_id: str
    artifacts: Path
    deadline: float | None = None
    on_event: Callable[[str], None] = lambda _: None
    on_status: Callable[[str], None] = lambda _: None
    lease: int = 0
    num_workers: int = 1
    joules: Callable[[], float] | None = None
    clock: Clock = CLOCK
    drain_wanted: str | None = None
    draining: bool = False
    wanted: requests.Wanted = requests.GO_ON
    hosts: Callable[[], Collection[str]] = tuple
    quarantine: Quarantine = field(default_factory=Quarantine)
    schedule: Schedule = field(init=False)
    _memory: Memory = field(init=False)
    _drifting: Drifting = field(init=False)
    _screen: Screen = field(default_factory=Screen)
    _last_beat: float = 0.0
    _exhausted: bool = False
    _parking: Parking = field(init=False)
    _room: Room = field(init=False)

    def __post_init__(self) -> None:
        self._memory = Memory(self.plan)
        self._drifting = Drifting(self.search_id, self.plan.settings.cost.drift_minutes)
        self.schedule = Schedule.of(
            self.plan, self.artifacts, self.deadline, self.num_workers, self.joules, self.clock
        )
        self._room = Room(
            self.search_id, self.plan, self.schedule, self._write, lambda text: self.on_event(text)
        )
        self._parking = Parking(
            self.quarantine,
            lambda: self.hosts(),
            lambda: self._settler,
            self._write,
            lambda number: self._ledger.after(number),
            self._event,
            self.drain,
        )

    def start(
        self, *, silent_beat: int | None = None, prepare: Callable[[Session], object] = lambda _: None
    ) -> None:
        """Takes the lease, settles what an earlier driver left, adds the baselines, and takes up what was stopped when
        an ended search is extended.

        silent_beat: see `searches.take`. prepare: written in the transaction that takes the lease, or not at all.
        Raises UserError when another driver is alive, or when the device is not the one that was measured on.
        """
        owner = lease.this_process()

        def take(session: Session) -> int:
            number = searches.take(session, self.search_id, owner, silent_beat)
            rows_of_requests.settle(session, self.search_id)  # who starts a driver wants it to go on
            prepare(session)
            return number

        self.lease = self.store.write(take)
        lost = self._write(self._reconcile)
        reconcile.remove_unknown_checkpoints(self.store, self.search_id, self.artifacts)
        orphans = self.study.fail_orphans(self._write(lambda s, _: candidates.trials(s, self.search_id)))
        if lost or orphans:
            self._event("reconciled", reconcile.words(lost, orphans))
        self._ledger.read_back()
        self._write(lambda s, search: self.schedule.begin(s, search))
        self._ledger.tell_untold()
        extending.take_up(self._ledger, self._settler)
        self._write(lambda _, search: searches.set_state(search, SearchState.RUNNING))

    def close(self) -> None:
        """Gives the lease back; the search's state stays as the last decision left it."""
        self.store.write(lambda s: searches.release(s, self.search_id, self.lease))

    def drain(self, reason: str) -> None:
        """No new job starts; those running go on to their end."""
        if self.draining:
            return
        self.draining = True
        self._write(lambda _, search: searches.set_state(search, SearchState.DRAINING, reason))
        self._event("drain", reason)

    # -- what engines call ------------------------------------------------------------------------------------

    def next_job(self) -> Job | Idle:
        """The next job, dispatched under a new attempt; WAIT while something running decides what follows;
        FINISHED when nothing runs and nothing will."""
        self.beat()
        if self._room.is_short() and not self._is_over and self._has_more():
            return Idle.WAIT
        if self._drifting.is_time:
            self._write(lambda s, _: self._drifting.look(s))
        while not self._is_over:
            job = self._next()
            if job is not None:
                self.schedule.started(job)
                return job
            # Nothing left that could tell whose fault a parked job is: the candidate's.
            if not (
                self._decide() or (self._parking.jobs and not self._is_running() and self._parking.fail_all())
            ):
                break
        if self._is_running():
            return Idle.WAIT
        reading = None if self.wanted.now else self._write(self._last_reading)
        if reading is not None:
            self.schedule.started(reading)
            return reading
        self._end()
        return Idle.FINISHED

    def progress(self, report: EpochReport) -> Decision:
        """Keeps an epoch's report. STOP when its attempt is stale, for want of time, or when a request wants it."""
        self.beat()

        def work(session: Session, _: Search) -> bool:
            attempt = jobs.live_attempt(session, report.job, report.attempt, report.lease)
            if attempt is None or report.lease != self.lease:
                return False
            jobs.add_epoch(session, session.get_one(JobRow, report.job).candidate_id, attempt, report)
            return True

        if not self._write(work):
            return Decision.STOP
        ends = self.schedule.progressed(report)
        return Decision.STOP if ends or self.wanted.now else Decision.CONTINUE

    def finish(self, outcome: Outcome) -> bool:
        """Keeps an outcome, once. False when it is stale and was refused."""

        def work(session: Session, search: Search) -> tuple[int, Settled] | None:
            attempt = jobs.live_attempt(session, outcome.job, outcome.attempt, outcome.lease)
            if attempt is None or outcome.lease != self.lease:
                text = f"late outcome of job {outcome.job}, attempt {outcome.attempt}, refused"
                results.add_event(session, self.search_id, "refused", text)
                return None
            settled = self._settler.settle(session, search, attempt, outcome, self._memory.baselines)
            return jobs.candidate_number(session, outcome.job), settled

        kept = self._write(work)
        self.schedule.ended(outcome)
        if kept is None:
            return False
        number, settled = kept
        if settled.teaches_anew:
            self._ledger.after(candidates.TEACHER)
        for path in settled.obsolete:
            (self.artifacts / path).unlink(missing_ok=True)
        self._ledger.after(number)
        if settled.news is not None:
            self.on_event(settled.news)
        if settled.measured:
            extending.take_up(self._ledger, self._settler)
        if settled.done:
            self._parking.done()
        tried = Tried(outcome.job, outcome.host, outcome.device_id, settled.trouble)
        self._parking.judge(tried, settled.given_up)
        return True

    def lost(
        self,
        job: int,
        attempt: int,
        reason: str,
        state: AttemptState = AttemptState.LOST,
        host: str | None = None,
    ) -> None:
        """An attempt will never report: its worker died (LOST) or was given up (FENCED). The job is retried.

        host: that the worker was on, where it is known. Where the job may not be tried again, it was the candidate's
        fault, unless nothing has ever worked here.
        """

        def work(session: Session, _: Search) -> tuple[int, bool] | None:
            row = jobs.live_attempt(session, job, attempt, self.lease)
            if row is None:
                return None
            job_row = session.get_one(JobRow, job)
            candidate = session.get_one(Candidate, job_row.candidate_id)
            row.host = host
            jobs.end_attempt(row, state, reason)
            again = self._settler.try_again(session, job_row, candidate, reason)
            if not again and self._parking.works:
                self._settler.give_up(session, job, reason)
            return candidate.number, again

        self.schedule.broken_off(job, attempt)
        kept = self._write(work)
        if kept is not None:
            self.on_event(f"job {job}, attempt {attempt}: {reason}")
            self._ledger.after(kept[0])
            given_up = None if kept[1] or self._parking.works else reason
            self._parking.judge(Tried(job, host or "", None, reason), given_up)

    def beat(self) -> None:
        """Moves the lease's counter, at most every few seconds, and looks at what is asked for."""
        if self.drain_wanted is not None:
            self.drain(self.drain_wanted)
        now = time.monotonic()
        if now - self._last_beat < _BEAT_SECONDS:
            return
        self._last_beat = now
        self.store.check_there()

        def work(session: Session, search: Search) -> tuple[requests.Wanted, str | None]:
            search.beat += 1
            search.beat_time = time.time()
            self.schedule.spending.keep(search)
            foreseen = planning.foresee(session, search, self._memory, self.schedule)
            return requests.heed(session, search, drains=self.draining), foreseen

        before, (self.wanted, foreseen) = self.wanted, self._write(work)
        if self.wanted != before:
            self.on_event(self.wanted.reason or "goes on, on request")
        if foreseen:
            self.on_event(foreseen)

    def _next(self) -> Job | None:
        """What is suspected of breaking machines, or to have been broken by one, goes last of all."""
        parked, suspects = self._parking.jobs.keys(), self.quarantine.suspects
        job = self._write(lambda s, _: self._dispatcher.next(s, parked | suspects))
        if job is None and suspects - parked:
            return (
                self._next() if self._decide() else self._write(lambda s, _: self._dispatcher.next(s, parked))
            )
        return job

    def _decide(self) -> bool:
        """Adds one thing to do. False when nothing can be decided before something running ends."""
        if self._memory.waits_for_baseline or self._trainings_wait():
            return False
        match next_step(self._memory, self.schedule, self._exhausted):
            case Promote(number, rung):
                promote(number, rung, self.search_id, self.plan, self._write)
                self._ledger.after(number)
                return True
            case Propose():
                return self._propose()
            case None:
                return False

    def _trainings_wait(self) -> bool:
        """Whether something cannot be trained before the teacher is there, or a probe done. What is proposed meanwhile
        would be proposed without knowing how any training goes."""
        return self._write(lambda s, _: self._dispatcher.some_wait(s, self._parking.jobs.keys()))

    def _propose(self) -> bool:
        """Raises UserError when a family of the user's own fails at a point."""
        number = self._memory.next_number
        try:
            propose(number, self.study, self._memory, self._settler, self._screen, self._write)
        except Exhausted:
            self._exhausted = True
            self._event("exhausted", f"the space holds nothing beyond the {number - 1} architectures tried")
            return True
        except SpaceError as error:
            again = hints.command("resume", self.name)
            raise UserError(f"space.{error}; mend that, then: {again}") from error
        self._ledger.after(number)
        return True

    def _end(self) -> None:
        """Nothing runs and nothing will: settles the states, and tells Optuna what that ended."""
        rests = self.draining or self.wanted.state is not None
        over = self.schedule.why_over(nothing_fits=not (rests or self._memory.is_full(self._exhausted)))

        def work(session: Session, search: Search) -> None:
            ending.settle(session, search, self.wanted, drains=self.draining, over=over)

        self._write(work)
        self._ledger.read_back()
        self._ledger.tell_untold()

    def _has_more(self) -> bool:
        waits = self._write(lambda s, _: next(jobs.pending(s, self.search_id), None) is not None)
        return waits or next_step(self._memory, self.schedule, self._exhausted) is not None

    @property
    def _is_over(self) -> bool:
        return bool(self.draining or self.wanted.state or self.schedule.why_over())

    def _is_running(self) -> bool:
        return self._write(lambda s, _: bool(jobs.running_attempts(s, self.search_id)))

    # -- the database, Optuna, memory -------------------------------------------------------------------------

    @property
    def _dispatcher(self) -> Dispatcher:
        return Dispatcher(
            self.plan, self.search_id, self.name, self.lease, self.artifacts, self._memory, self.schedule
        )

    @property
    def _ledger(self) -> Ledger:
        return Ledger(
            self.search_id,
            self._memory,
            self.schedule,
            self.study,
            self._write,
            self.on_event,
            self.on_status,
        )

    @property
    def _settler(self) -> Settler:
        return Settler(
            self.plan, self.search_id, self.lease, self.device_id, frozenset(self.quarantine.hosts)
        )

    def _reconcile(self, session: Session, search: Search) -> int:
        lost = reconcile.settle_leftovers(session, search, self.device_id)
        self._settler.add_teacher(session)
        self._settler.add_baselines(session, self._memory.baselines)
        self._drifting.begin(session)
        return lost

    def _last_reading(self, session: Session, _: Search) -> Job | None:
        """Before a search ends or rests: whether the device is still as it was."""
        self._drifting.last(session)
        return self._dispatcher.reading(session, self._parking.jobs.keys())

    def _event(self, kind: str, text: str) -> None:
        self._write(lambda s, _: results.add_event(s, self.search_id, kind, text))
        self.on_event(text)

    def _write(self, work: Callable[[Session, Search], T]) -> T:
        """One transaction under the lease. Raises LeaseLost when the search was taken over."""
        return self.store.write(lambda s: work(s, searches.fence(s, self.search_id, self.lease)))
