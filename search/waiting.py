"""Searches of the queue as `status` and the API show them. Imports nothing that is heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from search.states import CandidateState, JobState, QueueState, SearchState
from search.store.read import queue
from search.store.read.rows import QueueRow
from search.store.read.status import iso
from search.store.reader import Reader

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def place_of(session: Reader | Session, name: str) -> dict[str, Any] | None:
    """Where a search is in the queue; None where it is not, or no more. before: how many of those that are not held
    come first, as things stand; None while it runs or is held."""
    rows = queue.active(session)
    row = next((found for found in rows if found.name == name), None)
    return None if row is None else entry(row, rows)


def entry(row: QueueRow, rows: list[QueueRow]) -> dict[str, Any]:
    """rows: all that are active, in the order of priority and age."""
    ahead = [one.id for one in rows if one.state is QueueState.RUNNING or not one.held]
    waits = row.state is QueueState.WAITING and not row.held
    return {
        "name": row.name,
        "state": str(row.state),
        "held": row.held,
        "priority": row.priority,
        "window": row.window,
        "submitted": iso(row.created),
        "begun": row.search_id is not None,
        "before": ahead.index(row.id) if waits else None,
        "reason": row.reason,
    }


def view(session: Reader | Session) -> dict[str, Any]:
    """The whole queue, and whether anybody works it off."""
    rows = queue.active(session)
    return {"has_runner": queue.has_runner(session), "queue": [entry(row, rows) for row in rows]}


def not_begun(session: Reader | Session, name: str | None = None) -> list[dict[str, Any]]:
    """The object of `status NAME --json` of every search that waits for its begin, or could not begin, the newest
    first; of that name alone if one is given."""
    rows = queue.active(session)
    found = [row for row in queue.not_begun(session) if name in (None, row.name)]
    return [_status(row, rows) for row in found]


def _status(row: QueueRow, rows: list[QueueRow]) -> dict[str, Any]:
    is_failed = row.state is QueueState.FAILED
    state = SearchState.FAILED if is_failed else SearchState.QUEUED
    return {
        "search": {
            "name": row.name,
            "state": str(state),
            "started": None,
            "deadline": None,
            "ended": iso(row.ended),
            "reason": row.reason,
        },
        "candidates": {str(one): 0 for one in CandidateState},
        "baselines": {str(one): 0 for one in CandidateState},
        "jobs": {str(one): 0 for one in JobState},
        "epochs": 0,
        "forecasts": [],
        "best": None,
        "teacher": None,
        "drift": None,
        "executions": {},
        "screen": None,
        "queue": None if is_failed else entry(row, rows),
    }
