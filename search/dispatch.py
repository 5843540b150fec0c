"""Which waiting job is next, and what its worker is told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy.orm import Session

from search.memory import Memory
from search.plan import Plan
from search.probing import Prober, needs_execution
from search.schedule import Schedule
from search.states import CandidateState
from search.store.models import Candidate, JobRow
from search.store.write import candidates, jobs, results
from workers.execution import Execution
from workers.job import Job, Kind, TeacherRef
from workers.settings import JobSettings

BASELINE_FACTOR = 4
"""How much better a baseline is measured that a limit follows from, and how much longer that may take."""


@dataclass(frozen=True)
class Dispatcher:
    """Of one driver. search: its name. lease: the driver's."""

    plan: Plan
    search_id: int
    search: str
    lease: int
    artifacts: Path
    memory: Memory
    schedule: Schedule

    def next(self, session: Session, parked: Collection[int]) -> Job | None:
        """Opens an attempt at the first job that waits for nothing and that there is time for; None where there is
        none. parked: jobs to leave aside."""
        for row in jobs.pending(session, self.search_id, parked):
            candidate = session.get_one(Candidate, row.candidate_id)
            if row.first_epoch > 1:
                self._go_further_back(session, row, candidate)
            if self.waits(session, row) or not self.schedule.may_start(row, candidate):
                continue
            if not needs_execution(row) or self.prober.chosen(session, candidate) is not None:
                return self._open(session, row, candidate)
            probe = self.prober.probe(session, candidate)
            if probe is not None:
                return self._open(session, probe, candidate)
        return None

    def _go_further_back(self, session: Session, row: JobRow, candidate: Candidate) -> None:
        """A training whose checkpoint was removed to make room begins after an older one, or at the first epoch."""
        last = row.first_epoch - 1
        newest = results.newest_checkpoint(session, candidate, last)
        first = 1 if newest is None else newest.epoch + 1
        if first == row.first_epoch or not results.was_removed(session, candidate, last):
            return
        text = f"trains again from epoch {first}: its checkpoint of epoch {last} was removed to make room"
        results.add_event(session, self.search_id, "retry", text, candidate.number)
        row.first_epoch = first

    @property
    def prober(self) -> Prober:
        return Prober(self.plan, self.search_id)

    def reading(self, session: Session, parked: Collection[int]) -> Job | None:
        """Opens an attempt at a reading of the reference that waits, whatever time is left: it ends a search."""
        for row in jobs.pending(session, self.search_id, parked):
            if row.kind == Kind.REFERENCE:
                return self._open(session, row, session.get_one(Candidate, row.candidate_id))
        return None

    def _open(self, session: Session, row: JobRow, candidate: Candidate) -> Job:
        is_probe = row.kind == Kind.PROBE
        execution = self.prober.chosen(session, candidate) if needs_execution(row) else None
        if row.kind == Kind.TEACH or (row.kind == Kind.TRAIN and candidate.state == CandidateState.MEASURED):
            candidates.set_state(candidate, CandidateState.TRAINING)
        attempt = jobs.open_attempt(session, row, self.lease)
        return Job(
            id=row.id,
            attempt=attempt.number,
            lease=self.lease,
            kind=Kind(row.kind),
            search=self.search,
            candidate=candidate.number,
            spec=candidates.spec_of(candidate),
            settings=self.prober.settings(candidate)
            if is_probe
            else self._settings(Kind(row.kind), candidate.name),
            artifacts=str(self.artifacts),
            first_epoch=row.first_epoch,
            last_epoch=row.last_epoch,
            checkpoint=results.newest_checkpoint(session, candidate, row.first_epoch - 1),
            teacher=self._teacher_of(session, row, candidate),
            inherit=self.plan.inherits(candidate.family) if row.kind in (Kind.TRAIN, Kind.PROBE) else None,
            execution=execution or Execution(),
            probe=self.prober.task(candidate) if is_probe else None,
            latency_limits=self.memory.latency_limits if row.kind == Kind.MEASURE else (),
            further=self.memory.further_runtimes if row.kind == Kind.MEASURE else (),
        )

    def _settings(self, kind: Kind, baseline: str | None) -> JobSettings:
        """A reading is about time alone; a baseline that a limit follows from is known better than what is judged."""
        cost = self.plan.settings.cost
        if kind == Kind.REFERENCE:
            cost = replace(cost, energy_seconds=0.0)
        elif kind == Kind.MEASURE and baseline in {limit.baseline for limit in self.plan.constraints} - {
            None
        }:
            cost = replace(
                cost,
                relative_error=max(1e-6, cost.relative_error / BASELINE_FACTOR),
                max_seconds=min(3600.0, cost.max_seconds * BASELINE_FACTOR),
            )
        return replace(self.plan.settings, cost=cost)

    def some_wait(self, session: Session, parked: Collection[int]) -> bool:
        """Whether a job needs the teacher, which is not there yet, or a probe that is not done."""
        return any(self.waits(session, row) for row in jobs.pending(session, self.search_id, parked))

    def waits(self, session: Session, job: JobRow) -> bool:
        """Whether this job does."""
        if not needs_execution(job):
            return False
        row = session.get_one(Candidate, job.candidate_id)
        if (
            job.kind == Kind.TRAIN
            and self.memory.waits_for_teacher
            and self.plan.distils(candidates.spec_of(row))
        ):
            return True
        return self.prober.is_under_way(session, row)

    def _teacher_of(self, session: Session, job: JobRow, candidate: Candidate) -> TeacherRef | None:
        if job.kind != Kind.TRAIN or not self.plan.distils(candidates.spec_of(candidate)):
            return None
        row = candidates.teacher(session, self.search_id)
        made = None if row is None else results.newest_checkpoint(session, row, row.epoch)
        assert row is not None and row.name is not None and made is not None, "trained without its teacher"  # noqa: PT018
        return TeacherRef(row.name, candidates.spec_of(row), made)
