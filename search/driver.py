"""The only place where a search changes: what to do next, and what became of it.

An engine calls `next_job`, `progress`, `finish` and `lost`. Each first writes to the database under the lease, then
tells Optuna, then decides; nothing is remembered here that a new driver could not read back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeVar

from sqlalchemy.orm import Session

from search import drifting, ending, gate, hints, lease, news, reconcile, requests, rungs
from search.dispatch import Dispatcher
from search.drifting import Drifting
from search.errors import UserError
from search.memory import Memory
from search.plan import Plan
from search.proposing import propose
from search.sampler import Exhausted
from search.screening import Screen
from search.settle import Settled, Settler
from search.states import TERMINAL_CANDIDATE, AttemptState, CandidateState, SearchState
from search.store.models import Candidate, JobRow, Search
from search.store.session import Store
from search.store.write import candidates, jobs, results, searches
from search.store.write import requests as rows_of_requests
from search.study import Study
from spaces.dims import SpaceError
from workers.job import Decision, EpochReport, Job, Kind, Outcome

T = TypeVar("T")
_BEAT_SECONDS = 3.0


class Idle(Enum):
    """What `next_job` says when there is no job."""

    WAIT = "wait"
    FINISHED = "finished"


@dataclass
class Driver:
    """Drives one search from `start` to `close`.

    device_id: the device that its measurements come from. deadline: UTC seconds.
    drain_wanted: set to a reason (by a signal handler, which may not write), it drains at the next call.
    wanted: what the open requests come to.
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
    drain_wanted: str | None = None
    draining: bool = False
    wanted: requests.Wanted = requests.GO_ON
    _memory: Memory = field(init=False)
    _drifting: Drifting = field(init=False)
    _screen: Screen = field(default_factory=Screen)
    _since: dict[tuple[int, int], float] = field(default_factory=dict)
    _last_beat: float = 0.0
    _exhausted: bool = False
    _parked: dict[int, str] = field(default_factory=dict)
    _machine_works: bool = False

    def __post_init__(self) -> None:
        self._memory = Memory(self.plan)
        self._drifting = Drifting(self.search_id, self.plan.settings.cost.drift_minutes)

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
            self._event(
                "reconciled", f"{lost} attempt(s) of an earlier driver lost, {orphans} orphaned trial(s)"
            )
        self._read_back()
        self._tell_untold()
        self._take_up()
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
        if self._drifting.is_time:
            self._write(lambda s, _: self._drifting.look(s))
        while not (self.draining or self.wanted.state or self._past_deadline()):
            job = self._write(lambda s, _: self._dispatcher.next(s, self._parked.keys()))
            if job is not None:
                self._since[job.id, job.attempt] = time.monotonic()
                return job
            # Nothing left that could tell whose fault a parked job is: the candidate's.
            if not (self._decide() or (self._parked and not self._is_running() and self._fail_parked())):
                break
        if self._is_running():
            return Idle.WAIT
        reading = None if self.wanted.now else self._write(self._last_reading)
        if reading is not None:
            self._since[reading.id, reading.attempt] = time.monotonic()
            return reading
        self._end()
        return Idle.FINISHED

    def progress(self, report: EpochReport) -> Decision:
        """Keeps an epoch's report. STOP when its attempt is stale, the deadline has passed or a request wants it."""
        self.beat()

        def work(session: Session, _: Search) -> bool:
            attempt = jobs.live_attempt(session, report.job, report.attempt, report.lease)
            if attempt is None or report.lease != self.lease:
                return False
            jobs.add_epoch(session, session.get_one(JobRow, report.job).candidate_id, attempt, report)
            return True

        believed = self._write(work)
        ends = self.wanted.now or self._past_deadline()
        return Decision.CONTINUE if believed and not ends else Decision.STOP

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

        self._since.pop((outcome.job, outcome.attempt), None)
        kept = self._write(work)
        if kept is None:
            return False
        number, settled = kept
        if settled.teaches_anew:
            self._after(candidates.TEACHER)
        if settled.news is not None:
            self.on_event(settled.news)
        for path in settled.obsolete:
            (self.artifacts / path).unlink(missing_ok=True)
        self._after(number)
        if settled.measured:
            self._take_up()
        if settled.done:
            self._machine_works = True
            self._fail_parked()
        if settled.given_up is not None:
            self._park(outcome.job, settled.given_up)
        return True

    def lost(self, job: int, attempt: int, reason: str, state: AttemptState = AttemptState.LOST) -> None:
        """An attempt will never report: its worker died (LOST) or was given up (FENCED). The job is retried.

        Where it may not be tried again, it was the candidate's fault, unless nothing has ever worked here.
        """

        def work(session: Session, _: Search) -> tuple[int, bool] | None:
            row = jobs.live_attempt(session, job, attempt, self.lease)
            if row is None:
                return None
            job_row = session.get_one(JobRow, job)
            candidate = session.get_one(Candidate, job_row.candidate_id)
            jobs.end_attempt(row, state, reason)
            again = self._settler.try_again(session, job_row, candidate, reason)
            if not again and self._machine_works:
                self._settler.give_up(session, job, reason)
            return candidate.number, again

        self._since.pop((job, attempt), None)
        kept = self._write(work)
        if kept is not None:
            self.on_event(f"job {job}, attempt {attempt}: {reason}")
            self._after(kept[0])
            if not kept[1] and not self._machine_works:
                self._park(job, reason)

    def overdue(self) -> list[tuple[int, int]]:
        """(job, attempt) of the running attempts that have outlasted `limits.job_seconds`."""
        limit = self.plan.settings.limits.job_seconds
        now = time.monotonic()
        return [key for key, since in self._since.items() if now - since > limit]

    def beat(self) -> None:
        """Moves the lease's counter, at most every few seconds, and looks at what is asked for."""
        if self.drain_wanted is not None:
            self.drain(self.drain_wanted)
        now = time.monotonic()
        if now - self._last_beat < _BEAT_SECONDS:
            return
        self._last_beat = now
        self.store.check_there()

        def work(session: Session, search: Search) -> requests.Wanted:
            search.beat += 1
            search.beat_time = time.time()
            return requests.heed(session, search, drains=self.draining)

        before, self.wanted = self.wanted, self._write(work)
        if self.wanted != before:
            self.on_event(self.wanted.reason or "goes on, on request")

    def _decide(self) -> bool:
        """Adds one thing to do. False when nothing can be decided before something running ends."""
        if self._memory.waits_for_baseline or self._trainings_wait():
            return False
        closing = self._exhausted or len(self._memory.seen) >= self.plan.config.search.max_candidates
        maximise = [objective.maximise for objective in self.plan.objectives]
        promotion = rungs.next_promotion(
            self._memory.standings, len(self.plan.rungs), maximise, closing=closing
        )
        if promotion is not None:
            self._promote(*promotion)
            return True
        return not closing and self._propose()

    def _trainings_wait(self) -> bool:
        """Whether something cannot be trained before the teacher is there, or a probe done. What is proposed meanwhile
        would be proposed without knowing how any training goes."""
        return self._write(lambda s, _: self._dispatcher.some_wait(s, self._parked.keys()))

    def _promote(self, number: int, rung: int) -> None:
        def work(session: Session, _: Search) -> None:
            row = candidates.by_number(session, self.search_id, number)
            candidates.set_state(row, CandidateState.TRAINING)
            jobs.add(session, row, Kind.TRAIN, rung=rung, epochs=(row.epoch + 1, self.plan.rungs[rung]))

        self._write(work)
        self._after(number)

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
        self._after(number)
        return True

    def _end(self) -> None:
        """Nothing runs and nothing will: settles the states, and tells Optuna what that ended."""
        over = "the deadline has passed" if self._past_deadline() else None

        def work(session: Session, search: Search) -> None:
            ending.settle(session, search, self.wanted, drains=self.draining, over=over)

        self._write(work)
        self._read_back()
        self._tell_untold()

    def _past_deadline(self) -> bool:
        return self.deadline is not None and time.time() >= self.deadline

    def _park(self, job: int, reason: str) -> None:
        """Sets a job aside that this machine failed as often as it may be tried.

        If another job is done meanwhile, it was the candidate's fault. If a second one has to be parked first, or
        nothing has ever worked here, it is the machine's: the search is drained, and nothing is lost.
        """
        self._parked[job] = reason
        if len(self._parked) > 1 or not self._machine_works:
            self.drain(f"this machine fails its jobs ({reason}); mend that first")

    def _fail_parked(self) -> bool:
        """True when that changed something."""
        parked, self._parked = self._parked, {}
        for job, reason in parked.items():
            number = self._write(lambda s, _, job=job, reason=reason: self._settler.give_up(s, job, reason))
            self._after(number)
        return bool(parked)

    def _is_running(self) -> bool:
        return self._write(lambda s, _: bool(jobs.running_attempts(s, self.search_id)))

    # -- the database, Optuna, memory -------------------------------------------------------------------------

    @property
    def _dispatcher(self) -> Dispatcher:
        return Dispatcher(self.plan, self.search_id, self.name, self.lease, self.artifacts, self._memory)

    @property
    def _settler(self) -> Settler:
        return Settler(self.plan, self.search_id, self.lease, self.device_id)

    def _reconcile(self, session: Session, search: Search) -> int:
        lost = reconcile.settle_leftovers(session, search, self.device_id)
        self._settler.add_teacher(session)
        self._settler.add_baselines(session, self._memory.baselines)
        self._drifting.begin(session)
        return lost

    def _last_reading(self, session: Session, _: Search) -> Job | None:
        """Before a search ends or rests: whether the device is still as it was."""
        self._drifting.last(session)
        return self._dispatcher.reading(session, self._parked.keys())

    def _take_up(self) -> None:
        """What was stopped in an ended search that is extended may go on, and what was rejected by a figure that was
        wrong; under a new Optuna trial."""

        def those(session: Session, search: Search) -> list[Candidate]:
            wronged = drifting.readmissible(session, self.search_id, self._memory.limits)
            return [*candidates.to_take_up(session, search), *wronged]

        for row in self._write(those):
            trial = self.study.ask_again(row.point) if row.number > 0 else None

            def work(
                session: Session, _: Search, number: int = row.number, trial: int | None = trial
            ) -> None:
                again = candidates.by_number(session, self.search_id, number)
                self._settler.take_up(session, again, trial, self._memory.baselines)

            self._write(work)
            self._after(row.number)

    def _after(self, number: int) -> None:
        """After a commit that concerned a candidate: look at it again, and tell Optuna if it has ended."""
        row = self._write(lambda s, _: candidates.by_number(s, self.search_id, number))
        before = self._memory.states.get(number)
        self._look_at(row)
        text = news.of_candidate(row, self.plan)
        if text is not None and row.state != before:
            self.on_event(text)
        self.on_status(news.of_search([seen.state for seen in self._memory.seen.values()], self.plan))
        if number > 0 and CandidateState(row.state) in TERMINAL_CANDIDATE:
            self._tell(row)

    def _read_back(self) -> None:
        for row in self._write(lambda s, _: candidates.all_of(s, self.search_id)):
            self._look_at(row)

    def _look_at(self, row: Candidate) -> None:
        """Raises UserError when the search has failed with it."""
        self._memory.look_at(row)
        reason = self._memory.why_failed(row)
        if reason is not None:
            self._write(lambda _, search: searches.set_state(search, SearchState.FAILED, reason))
            raise UserError(reason)

    def _tell_untold(self) -> None:
        for row in self._write(lambda s, _: candidates.untold(s, self.search_id)):
            self._tell(row)

    def _tell(self, row: Candidate) -> None:
        """Tells Optuna how a candidate ended, then notes that it was told."""
        assert row.trial is not None
        values = None
        if row.state == CandidateState.FINISHED:
            values = [float(row.measured[objective.name]) for objective in self.plan.objectives]
        violations = gate.violations(self._memory.limits, row.measured)
        self.study.tell(row.trial, CandidateState(row.state), values, violations)
        self._write(lambda s, _: candidates.mark_told(s, self.search_id, row.number))

    def _event(self, kind: str, text: str) -> None:
        self._write(lambda s, _: results.add_event(s, self.search_id, kind, text))
        self.on_event(text)

    def _write(self, work: Callable[[Session, Search], T]) -> T:
        """One transaction under the lease. Raises LeaseLost when the search was taken over."""
        return self.store.write(lambda s: work(s, searches.fence(s, self.search_id, self.lease)))
