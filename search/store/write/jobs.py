"""Writes to jobs and attempts. (job, attempt, lease) must fit, or a report is refused."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from search.states import AttemptState, JobState
from search.store.models import Attempt, Candidate, Epoch, JobRow
from workers.job import EpochReport, Kind


def add(
    session: Session,
    candidate: Candidate,
    kind: Kind,
    *,
    rung: int | None = None,
    epochs: tuple[int, int] = (0, 0),
) -> JobRow:
    """Adds a pending job. epochs: first and last, both included, for a train job."""
    row = JobRow(
        search_id=candidate.search_id,
        candidate_id=candidate.id,
        kind=kind,
        rung=rung,
        first_epoch=epochs[0],
        last_epoch=epochs[1],
        state=JobState.PENDING,
        created=time.time(),
    )
    session.add(row)
    session.flush()
    return row


def open_attempt(session: Session, job: JobRow, lease: int) -> Attempt:
    """Starts the next attempt at a pending job."""
    assert job.state == JobState.PENDING, f"job {job.id} is {job.state}"
    number = len(session.scalars(select(Attempt.id).where(Attempt.job_id == job.id)).all()) + 1
    job.state = JobState.RUNNING
    row = Attempt(job_id=job.id, number=number, lease=lease, state=AttemptState.RUNNING, started=time.time())
    session.add(row)
    session.flush()
    return row


def live_attempt(session: Session, job: int, attempt: int, lease: int) -> Attempt | None:
    """The attempt that a report names, if it is still running under this lease; None for a stale report."""
    return session.scalars(
        select(Attempt).where(
            Attempt.job_id == job,
            Attempt.number == attempt,
            Attempt.lease == lease,
            Attempt.state == AttemptState.RUNNING,
        )
    ).one_or_none()


def running_attempts(session: Session, search_id: int) -> list[Attempt]:
    return list(
        session.scalars(
            select(Attempt)
            .join(JobRow, JobRow.id == Attempt.job_id)
            .where(JobRow.search_id == search_id, Attempt.state == AttemptState.RUNNING)
            .order_by(Attempt.id)
        )
    )


def pending(session: Session, search_id: int, but: Collection[int] = ()) -> Iterator[JobRow]:
    """The pending jobs that are not among `but`, oldest first; a teacher first of all, and what measures before what
    trains."""
    first = [JobRow.kind != kind for kind in (Kind.REFERENCE, Kind.TEACH, Kind.MEASURE)]
    yield from session.scalars(
        select(JobRow)
        .where(JobRow.search_id == search_id, JobRow.state == JobState.PENDING, JobRow.id.not_in(but))
        .order_by(*first, JobRow.id)
    )


def count_attempts(session: Session, job: int, lease: int, but: Collection[str] = ()) -> int:
    """Tries at a job under one lease, but for those that did what they were told to, and those on some hosts."""
    query = select(func.count()).select_from(Attempt).where(Attempt.job_id == job, Attempt.lease == lease)
    query = query.where(Attempt.state != AttemptState.DONE, func.coalesce(Attempt.host, "").not_in(but))
    return session.scalar(query) or 0


def candidate_number(session: Session, job: int) -> int:
    """The number of the candidate that a job works on."""
    query = select(Candidate.number).join(JobRow, JobRow.candidate_id == Candidate.id).where(JobRow.id == job)
    return session.scalars(query).one()


def lengths(session: Session, search_id: int) -> list[tuple[JobRow, Candidate, int, float]]:
    """What attempts that ended by themselves did: at which job, of whom, how many epochs, and in how many seconds; in
    the order of their ends."""
    epochs = select(func.count()).where(Epoch.attempt_id == Attempt.id).scalar_subquery()
    query = (
        select(JobRow, Candidate, epochs, Attempt.seconds)
        .join(Candidate, Candidate.id == JobRow.candidate_id)
        .join(Attempt, Attempt.job_id == JobRow.id)
        .where(JobRow.search_id == search_id, Attempt.state == AttemptState.DONE, Attempt.seconds > 0)
        .order_by(Attempt.ended, Attempt.id)
    )
    return [(job, row, done, seconds or 0.0) for job, row, done, seconds in session.execute(query)]


def open_candidates(session: Session, search_id: int) -> set[int]:
    """Row ids of the candidates that a job waits for or is at work on."""
    is_open = JobRow.state.in_([str(JobState.PENDING), str(JobState.RUNNING)])
    return set(session.scalars(select(JobRow.candidate_id).where(JobRow.search_id == search_id, is_open)))


def cancel_pending(
    session: Session, search_id: int, reason: str, *, candidate: Candidate | None = None
) -> None:
    """Cancels the jobs that nobody has started; of one candidate where one is given."""
    query = select(JobRow).where(JobRow.search_id == search_id, JobRow.state == JobState.PENDING)
    if candidate is not None:
        query = query.where(JobRow.candidate_id == candidate.id)
    for row in session.scalars(query).all():
        end_job(row, JobState.CANCELLED, reason)


def lose_running(session: Session, search_id: int, reason: str) -> int:
    """Ends the attempts that nobody is at any more and puts their jobs back; returns how many. They do not count as
    tries."""
    left = running_attempts(session, search_id)
    for attempt in left:
        end_attempt(attempt, AttemptState.LOST, reason)
        session.get_one(JobRow, attempt.job_id).state = JobState.PENDING
    return len(left)


def end_attempt(
    attempt: Attempt, state: AttemptState, reason: str | None = None, detail: str | None = None
) -> None:
    attempt.state, attempt.reason, attempt.detail = state, reason, detail
    attempt.ended = time.time()


def end_job(job: JobRow, state: JobState, reason: str | None = None) -> None:
    job.state, job.reason, job.ended = state, reason, time.time()


def add_epoch(session: Session, candidate_id: int, attempt: Attempt, report: EpochReport) -> None:
    """Keeps an epoch's report; the same epoch of the same attempt only once."""
    known = session.scalar(
        select(Epoch.id).where(Epoch.attempt_id == attempt.id, Epoch.epoch == report.epoch)
    )
    if known is not None:
        return
    session.add(
        Epoch(
            candidate_id=candidate_id,
            attempt_id=attempt.id,
            epoch=report.epoch,
            train_loss=report.train_loss,
            val_loss=report.val_loss,
            accuracy=report.accuracy,
            accuracy_low=report.accuracy_low,
            accuracy_high=report.accuracy_high,
            learning_rate=report.learning_rate,
            seconds=report.seconds,
            pause_seconds=report.pause_seconds,
            time=time.time(),
        )
    )
