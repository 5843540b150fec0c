"""How many candidates and jobs of a search are in which state."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from search.states import CandidateState, JobState
from search.store.reader import Reader, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def candidate_counts(
    session: Reader | Session, search_id: int, role: str = "candidate"
) -> dict[CandidateState, int]:
    """State -> number of candidates, all states included."""
    sql = """SELECT state, COUNT(*) AS num FROM candidate WHERE search_id = :search AND role = :role
             GROUP BY state"""
    rows = fetch(session, sql, search=search_id, role=role)
    return dict.fromkeys(CandidateState, 0) | {CandidateState(row["state"]): row["num"] for row in rows}


def job_counts(session: Reader | Session, search_id: int) -> dict[JobState, int]:
    """State -> number of jobs, all states included."""
    sql = "SELECT state, COUNT(*) AS num FROM job WHERE search_id = :search GROUP BY state"
    rows = fetch(session, sql, search=search_id)
    return dict.fromkeys(JobState, 0) | {JobState(row["state"]): row["num"] for row in rows}


def iso(time: float | None) -> str | None:
    """ISO 8601 with seconds, UTC."""
    return None if time is None else datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
