"""Jobs and the attempts at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.states import AttemptState, JobState
from search.store.read.rows import AttemptView, JobView
from search.store.reader import Reader, changed, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_JOB = """
SELECT job.id, candidate.number AS candidate, job.kind, job.rung, job.first_epoch, job.last_epoch, job.state,
       job.reason, job.created, job.ended,
       (SELECT COUNT(*) FROM attempt WHERE attempt.job_id = job.id) AS num_attempts
FROM job JOIN candidate ON candidate.id = job.candidate_id
"""
_ATTEMPT = """
SELECT attempt.id, attempt.job_id AS job, job.kind, attempt.number, attempt.lease, attempt.state,
attempt.reason,
       attempt.detail, attempt.host, attempt.pid, attempt.device_id, attempt.started, attempt.ended,
       attempt.seconds
FROM attempt JOIN job ON job.id = attempt.job_id
"""


def jobs(
    session: Reader | Session,
    search_id: int,
    state: JobState | None = None,
    *,
    after: int = 0,
    limit: int | None = None,
) -> list[JobView]:
    """Jobs in the order of their making. after, limit: a page, at most `limit` of those with a higher id."""
    only = "" if state is None else " AND job.state = :state"
    page = "" if limit is None else f" LIMIT {int(limit)}"
    sql = f"{_JOB} WHERE job.search_id = :search AND job.id > :after{only} ORDER BY job.id{page}"
    values = {"search": search_id, "after": after} | ({} if state is None else {"state": str(state)})
    return [JobView(**changed(row, state=JobState(row["state"]))) for row in fetch(session, sql, **values)]


def attempts(session: Reader | Session, candidate_id: int) -> list[AttemptView]:
    """All attempts at the jobs of one candidate (by row id), in the order of their start."""
    sql = f"{_ATTEMPT} WHERE job.candidate_id = :candidate ORDER BY attempt.id"
    rows = fetch(session, sql, candidate=candidate_id)
    return [AttemptView(**changed(row, state=AttemptState(row["state"]))) for row in rows]


def busy_seconds(session: Reader | Session, search_id: int) -> float:
    """Seconds that workers spent in jobs of the search, lost attempts not counted."""
    sql = """SELECT COALESCE(SUM(attempt.seconds), 0) AS busy FROM attempt JOIN job ON job.id = attempt.job_id
             WHERE job.search_id = :search"""
    return float(fetch(session, sql, search=search_id)[0]["busy"])
