"""How a search stands: counts, and the best so far."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from search.objectives import parse_objectives
from search.states import CandidateState, JobState, SearchState
from search.store.read.results import num_epochs
from search.store.read.rows import SearchRow
from search.store.read.searches import search_by_name
from search.store.reader import Reader, changed, decode, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def status(session: Reader | Session, name: str) -> dict[str, Any]:
    """The object that `status NAME --json` prints. Raises UserError for an unknown name."""
    return status_of(session, search_by_name(session, name))


def status_of(session: Reader | Session, search: SearchRow) -> dict[str, Any]:
    """Counts hold every state, with 0 where there is none. Times are ISO 8601, UTC.

    best: among the finished, by the first objective; None before one is. What ran in an interrupted search is
    counted as pending, which it will be when the search is resumed.
    """
    jobs = job_counts(session, search.id)
    if search.state == SearchState.INTERRUPTED:
        jobs[JobState.PENDING] += jobs[JobState.RUNNING]
        jobs[JobState.RUNNING] = 0
    return {
        "search": {
            "name": search.name,
            "state": str(search.state),
            "started": iso(search.started),
            "deadline": iso(search.deadline),
            "ended": iso(search.ended),
            "reason": search.reason,
        },
        "candidates": _plain(candidate_counts(session, search.id)),
        "baselines": _plain(candidate_counts(session, search.id, role="baseline")),
        "jobs": _plain(jobs),
        "epochs": num_epochs(session, search.id),
        "best": _best(session, search),
    }


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


def _best(session: Reader | Session, search: SearchRow) -> dict[str, Any] | None:
    objectives = parse_objectives(search.config["objectives"])
    first = objectives[0]
    sql = """SELECT number, measured, intervals FROM candidate
             WHERE search_id = :search AND role = 'candidate' AND state = 'finished' ORDER BY number"""
    finished = [
        changed(row, measured=decode(row["measured"])) for row in fetch(session, sql, search=search.id)
    ]
    scored = [row for row in finished if first.name in row["measured"]]
    if not scored:
        return None
    sign = 1 if first.maximise else -1
    best = max(scored, key=lambda row: sign * row["measured"][first.name])
    return {
        "candidate": best["number"],
        "values": {q.name: best["measured"][q.name] for q in objectives if q.name in best["measured"]},
        "intervals": decode(best["intervals"]),
    }


def _plain(counts: dict[Any, int]) -> dict[str, int]:
    return {str(state): num for state, num in counts.items()}
