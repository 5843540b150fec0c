"""The queue, and who works it off."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from search.states import ACTIVE_QUEUE, QueueState
from search.store.read.rows import QueueRow, RunnerRow
from search.store.reader import Reader, Row, decode, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_PLAIN = [f.name for f in dataclasses.fields(QueueRow) if f.name not in ("modules", "window")]
_COLUMNS = ", ".join([*_PLAIN, "plugins", '"window"'])  # a reserved word of PostgreSQL
_RUNNER = ", ".join(field.name for field in dataclasses.fields(RunnerRow))
_ACTIVE = ", ".join(f"'{state}'" for state in ACTIVE_QUEUE)


def active(session: Reader | Session) -> list[QueueRow]:
    """What waits or runs: by priority, then the oldest first."""
    sql = f"SELECT {_COLUMNS} FROM queue WHERE state IN ({_ACTIVE}) ORDER BY priority DESC, id"
    return [_row(found) for found in fetch(session, sql)]


def not_begun(session: Reader | Session) -> list[QueueRow]:
    """Of every name that is no search yet the last row, unless it was taken out of the queue; the newest first."""
    sql = f"""SELECT {_COLUMNS} FROM queue WHERE search_id IS NULL AND state <> '{QueueState.ENDED}'
              AND id IN (SELECT MAX(id) FROM queue GROUP BY name)
              AND name NOT IN (SELECT name FROM search) ORDER BY id DESC"""
    return [_row(found) for found in fetch(session, sql)]


def newest(session: Reader | Session, name: str) -> QueueRow | None:
    """The last row of a name, whatever has become of it."""
    sql = f"SELECT {_COLUMNS} FROM queue WHERE name = :name ORDER BY id DESC LIMIT 1"
    found = fetch(session, sql, name=name)
    return _row(found[0]) if found else None


def config_of(session: Reader | Session, row_id: int) -> dict[str, Any]:
    """The config that a row was submitted with."""
    found = fetch(session, "SELECT id, config FROM queue WHERE id = :id", id=row_id)
    return decode("queue", found[0], "config")


def runners(session: Reader | Session) -> list[RunnerRow]:
    """Those that have not said goodbye; `search.lease.alive` tells whether they live."""
    return [RunnerRow(**row) for row in fetch(session, f"SELECT {_RUNNER} FROM runner ORDER BY id")]


def has_runner(session: Reader | Session) -> bool:
    """Whether anybody works the queue off at this moment, as far as one look can tell."""
    from search import lease

    return any(lease.alive(row) for row in runners(session))


def _row(found: Row) -> QueueRow:
    plugins = decode("queue", found, "plugins").get("modules", [])
    values = {key: value for key, value in found.items() if key != "plugins"}
    return QueueRow(
        **values
        | {
            "modules": tuple(map(str, plugins)),
            "state": QueueState(found["state"]),
            "held": bool(found["held"]),
        }
    )
