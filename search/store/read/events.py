"""What happened in a search, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.store.read.rows import EventView
from search.store.reader import Reader, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_COLUMNS = "id, time, kind, candidate, text"


def events(
    session: Reader | Session, search_id: int, *, after: int = 0, limit: int = 1000
) -> list[EventView]:
    """Events in order: at most `limit` of those with a higher id than `after`."""
    sql = f"SELECT {_COLUMNS} FROM event WHERE search_id = :search AND id > :after ORDER BY id LIMIT {int(limit)}"
    return [EventView(**row) for row in fetch(session, sql, search=search_id, after=after)]


def newest(session: Reader | Session, search_id: int, kind: str, candidate: int) -> EventView | None:
    """The last one of a kind about a candidate."""
    sql = (
        f"SELECT {_COLUMNS} FROM event WHERE search_id = :search AND candidate = :candidate AND kind = :kind "
        "ORDER BY id DESC LIMIT 1"
    )
    rows = fetch(session, sql, search=search_id, candidate=candidate, kind=kind)
    return EventView(**rows[0]) if rows else None


def last_events(session: Reader | Session, search_id: int, limit: int = 20) -> list[EventView]:
    """The newest events, in order."""
    sql = f"SELECT {_COLUMNS} FROM event WHERE search_id = :search ORDER BY id DESC LIMIT {int(limit)}"
    return [EventView(**row) for row in reversed(fetch(session, sql, search=search_id))]
