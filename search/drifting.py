"""A reference is read again as a search goes on, and what was measured while the device changed is measured again.

Everything is told from rows: readings are measurements of no candidate, made by `reference` jobs; a job to measure
again is an ordinary one. A reading and what it leads to are written in one transaction, so that a kill loses neither
and no reading counts twice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from search import drift, gate
from search.objectives import Limit
from search.states import CandidateState, JobState
from search.store.models import Attempt, Candidate, JobRow, MeasurementRow
from search.store.read import drift as rows
from search.store.write import candidates, jobs, results
from workers.job import Kind, Measurement

_OPEN = (JobState.PENDING, JobState.RUNNING)
_SOON_SECONDS = 5.0
_PATIENCE_SECONDS = 60.0
"""A reading of so long ago serves a driver that starts: one that is killed again and again does not only read."""


@dataclass
class Drifting:
    """Of one driver's search. minutes: between readings; 0 for none at all."""

    search_id: int
    minutes: float
    _look_at: float = 0.0

    def begin(self, session: Session) -> None:
        """As a driver starts: a reading, where an earlier one has measured, and the last reading was not just now; and
        what was to be measured again, and no longer waits for it because the search had ended."""
        of = self._reference(session)
        if of is None or self._waits(session):
            return
        last = self._looked(session, of)
        is_old = last is None or time.time() - last > _PATIENCE_SECONDS
        if is_old and self._measured_since(session, None):
            self._add(session, of)
        self._measure_again(session, of)

    @property
    def is_time(self) -> bool:
        """Whether it is worth looking into the database."""
        return self.minutes > 0 and time.time() >= self._look_at

    def look(self, session: Session) -> None:
        """As a driver works: a reading once `minutes` have gone since the last one, if anything was measured since. The
        first comes soon, where the reference's own figure is older than the search, and so is none."""
        now = time.time()
        self._look_at = now + min(_PATIENCE_SECONDS, self.minutes * 60 / 10)
        of = self._reference(session)
        if of is None or self._waits(session):
            return
        last = self._looked(session, of)
        if last is None:
            self._look_at = now + _SOON_SECONDS
        due = last is None or now - last >= self.minutes * 60
        if due and self._measured_since(session, last):
            self._add(session, of)

    def last(self, session: Session) -> None:
        """As nothing else is left to do: a reading, if anything was measured since the last one."""
        of = self._reference(session)
        if of is None or self._waits(session):
            return
        if self._measured_since(session, self._looked(session, of)):
            self._add(session, of)

    def keep_reading(self, session: Session, row: Candidate, found: Measurement, attempt: Attempt) -> None:
        """A reference job is done: keeps the reading, and adds what follows from it."""
        of = rows.Reference(row.id, row.name or f"#{row.number}")
        before = rows.readings(session, self.search_id, of).clean
        results.add_reading(session, row, found, attempt)
        if "contended" in found.flags:
            text = f"reference {of.name}: other work disturbed the reading, which tells nothing"
            results.add_event(session, self.search_id, "drift", text)
            return
        after = rows.readings(session, self.search_id, of).clean
        numbers = self._measure_again(session, of)
        if before and drift.differ(before[-1], after[-1]):
            text = (
                f"reference {of.name}: {before[-1].ms:.4g} ms, then {after[-1].ms:.4g}; "
                f"measured again is what lay between: {', '.join(map(_called, numbers)) or 'nothing'}"
            )
            results.add_event(session, self.search_id, "drift", text)

    def _measure_again(self, session: Session, of: rows.Reference) -> list[int]:
        """Flags what drifted, and adds jobs to measure it again; returns the numbers of those."""
        found = rows.readings(session, self.search_id, of)
        taken = rows.taken(session, self.search_id, found.key)
        last = {one.candidate: one.at for one in taken}
        verdict = drift.judge(found.clean, taken)
        for at in sorted(verdict.drifted):
            self._flag(session, session.get_one(MeasurementRow, at), last, verdict)
        numbers = []
        for key in verdict.again:
            row = session.get_one(Candidate, key)
            waits = select(JobRow.id).where(
                JobRow.candidate_id == key, JobRow.kind == Kind.MEASURE, JobRow.state.in_(_OPEN)
            )
            if row.state == CandidateState.FAILED or session.scalar(waits) is not None:
                continue
            if self._has_failed_since(session, key, last[key]):
                continue
            jobs.add(session, row, Kind.MEASURE)
            numbers.append(row.number)
        return numbers

    def _flag(
        self, session: Session, row: MeasurementRow, last: Mapping[int, int], verdict: drift.Verdict
    ) -> None:
        """last: candidate -> place of its last measurement."""
        flags = list(row.figures["flags"])
        if drift.FLAG in flags:
            return
        row.figures = dict(row.figures) | {"flags": [*flags, drift.FLAG]}
        assert row.candidate_id is not None
        if last[row.candidate_id] == row.id and row.candidate_id in verdict.given_up:
            number = session.get_one(Candidate, row.candidate_id).number
            text = f"stays flagged {drift.FLAG}: measured again {drift.MOST_AGAIN} times, and the reference moved again"
            results.add_event(session, self.search_id, drift.FLAG, text, number)

    def _reference(self, session: Session) -> rows.Reference | None:
        return rows.reference(session, self.search_id) if self.minutes else None

    def _add(self, session: Session, of: rows.Reference) -> None:
        jobs.add(session, session.get_one(Candidate, of.id), Kind.REFERENCE)

    def _waits(self, session: Session) -> bool:
        """Whether a reading is to come already."""
        query = select(JobRow.id).where(
            JobRow.search_id == self.search_id, JobRow.kind == Kind.REFERENCE, JobRow.state.in_(_OPEN)
        )
        return session.scalars(query.limit(1)).first() is not None

    def _looked(self, session: Session, of: rows.Reference) -> float | None:
        """When it was last tried to read."""
        failed = select(func.max(JobRow.ended)).where(
            JobRow.search_id == self.search_id,
            JobRow.kind == Kind.REFERENCE,
            JobRow.state == JobState.FAILED,
        )
        times = [rows.readings(session, self.search_id, of).last_time, session.scalar(failed)]
        return max((each for each in times if each is not None), default=None)

    def _measured_since(self, session: Session, moment: float | None) -> bool:
        query = select(func.max(MeasurementRow.time)).where(
            MeasurementRow.search_id == self.search_id,
            MeasurementRow.candidate_id.is_not(None),
            MeasurementRow.source_id.is_(None),
        )
        newest = session.scalar(query)
        return newest is not None and (moment is None or newest > moment)

    def _has_failed_since(self, session: Session, candidate: int, at: int) -> bool:
        """Whether measuring it again was tried after that measurement, and failed."""
        moment = session.get_one(MeasurementRow, at).time
        query = select(JobRow.id).where(
            JobRow.candidate_id == candidate,
            JobRow.kind == Kind.MEASURE,
            JobRow.state == JobState.FAILED,
            JobRow.ended > moment,
        )
        return session.scalars(query.limit(1)).first() is not None


def is_again(job: JobRow, candidate: Candidate) -> bool:
    """Whether a job measures what has figures already: whatever comes of it, the candidate goes on."""
    if job.kind == Kind.REFERENCE:
        return True
    return job.kind == Kind.MEASURE and candidate.state != CandidateState.PROPOSED


def keep_again(session: Session, row: Candidate, found: Measurement, limits: Sequence[Limit]) -> None:
    """New figures of a candidate that had some: they replace those, and it passes the gate again. What was not trained
    yet is rejected where it breaks a limit for sure; what was stays, and is judged by the new figures."""
    before = float(row.measured["latency_ms"])
    candidates.learn(row, *gate.measured_values(found))
    text = f"measured again: latency_ms {found.latency_ms:.4g}, {before:.4g} before"
    results.add_event(session, row.search_id, "again", text, row.number)
    reason = gate.rejection(limits, row.measured, row.intervals) if row.number > 0 else None
    if reason is None:
        return
    if row.state == CandidateState.MEASURED:
        jobs.cancel_pending(session, row.search_id, reason, candidate=row)
        candidates.set_state(row, CandidateState.REJECTED, reason)
        results.add_event(session, row.search_id, "rejected", reason, row.number)
    elif row.state == CandidateState.REJECTED:
        row.reason = reason
    else:
        text = f"{reason}; it has been trained, stays, and is judged by that"
        results.add_event(session, row.search_id, "again", text, row.number)


def readmissible(session: Session, search_id: int, limits: Sequence[Limit]) -> list[Candidate]:
    """Candidates that were rejected by a figure which turned out wrong: by the new one no limit is broken for sure."""
    twice = [
        key
        for key, count in session.execute(
            select(MeasurementRow.candidate_id, func.count())
            .where(
                MeasurementRow.search_id == search_id,
                MeasurementRow.candidate_id.is_not(None),
                MeasurementRow.source_id.is_(None),
            )
            .group_by(MeasurementRow.candidate_id)
        )
        if count > 1
    ]
    found = session.scalars(
        select(Candidate)
        .where(Candidate.id.in_(twice), Candidate.state == CandidateState.REJECTED, Candidate.number > 0)
        .order_by(Candidate.number)
    )
    return [row for row in found if gate.rejection(limits, row.measured, row.intervals) is None]


def _called(number: int) -> str:
    return f"#{number}" if number > 0 else f"baseline {-number}"
