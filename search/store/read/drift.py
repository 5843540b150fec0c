"""Readings of the reference, and what was measured between them.

A reading is a measurement row of no candidate, made by a `reference` job; the job is on the candidate or baseline that
is the reference. The reference's own first measurement in the search is a reading as well. Rows of other conditions
than the newest reading's are of another front, and left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search.drift import Reading, Taken, words
from search.states import CandidateState
from search.store.reader import Reader, Row, decode, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_KEY = ("device_id", "threads", "runtime", "precision", "batch_size", "protocol")
_CONDITIONS = ", ".join(f"m.{name}" for name in _KEY)
_COLUMNS = f"m.id, m.figures, m.time, {_CONDITIONS}"
_READINGS = f"""
SELECT {_COLUMNS} FROM measurement m JOIN attempt a ON a.id = m.attempt_id JOIN job j ON j.id = a.job_id
WHERE j.search_id = :search AND j.kind = 'reference' ORDER BY m.id
"""
_OWN = f"""
SELECT {_COLUMNS} FROM measurement m
WHERE m.search_id = :search AND m.candidate_id = :candidate AND m.source_id IS NULL ORDER BY m.id LIMIT 1
"""
_TAKEN = f"""
SELECT m.id, m.candidate_id, {_CONDITIONS} FROM measurement m
WHERE m.search_id = :search AND m.candidate_id IS NOT NULL AND m.source_id IS NULL ORDER BY m.id
"""
_READ = "SELECT candidate_id FROM job WHERE search_id = :search AND kind = 'reference' ORDER BY id LIMIT 1"
_PEOPLE = """
SELECT c.id, c.number, c.name, c.family, c.state,
       (SELECT MIN(m.id) FROM measurement m WHERE m.candidate_id = c.id) AS first
FROM candidate c WHERE c.search_id = :search AND c.role = :role ORDER BY ABS(c.number) LIMIT 100
"""


@dataclass(frozen=True)
class Reference:
    """The model that is read. id: of its candidate row. name: a baseline's, or `#3`."""

    id: int
    name: str


@dataclass(frozen=True)
class Readings:
    """clean: those that other work did not disturb, in order. contended: how many it did. last_time: of either kind,
    UTC seconds; None before any. key: the conditions of all of them."""

    clean: tuple[Reading, ...]
    contended: int
    last_time: float | None
    key: tuple[Any, ...] | None


def told(session: Reader | Session, search_id: int) -> str | None:
    """How steady the device was, in words; None before anything was measured."""
    of = reference(session, search_id)
    if of is None:
        return None
    found = readings(session, search_id, of)
    return None if found.last_time is None else words(of.name, found.clean, contended=found.contended)


def reference(session: Reader | Session, search_id: int) -> Reference | None:
    """The one that has been read, else the first baseline, else the first candidate that was measured; None while the
    first baseline is still to be."""
    chosen = fetch(session, _READ, search=search_id)
    for role in ("baseline", "candidate"):
        for row in fetch(session, _PEOPLE, search=search_id, role=role):
            if chosen and row["id"] != chosen[0]["candidate_id"]:
                continue
            if row["first"] is not None:
                return Reference(row["id"], row["name"] or f"#{row['number']}")
            if role == "baseline" and row["state"] == CandidateState.PROPOSED:
                return None
    return None


def readings(session: Reader | Session, search_id: int, of: Reference) -> Readings:
    rows = fetch(session, _OWN, search=search_id, candidate=of.id)
    rows += fetch(session, _READINGS, search=search_id)
    key = _key(max(rows, key=lambda row: row["id"])) if rows else None
    rows = [row for row in rows if _key(row) == key]
    clean, contended = [], 0
    for row in rows:
        figures = decode("measurement", row, "figures")
        if "contended" in figures["flags"]:
            contended += 1
            continue
        ms = float(figures["latency_ms"])
        error = ms * float(figures["latency_relative_error"])
        clean.append(Reading(row["id"], ms, error, row["time"]))
    clean.sort(key=lambda reading: reading.at)
    return Readings(tuple(clean), contended, max((row["time"] for row in rows), default=None), key)


def taken(session: Reader | Session, search_id: int, key: tuple[Any, ...] | None) -> list[Taken]:
    """What was measured in this search, not taken over from others, in order. key: the conditions; None for any."""
    rows = fetch(session, _TAKEN, search=search_id)
    return [Taken(row["id"], row["candidate_id"]) for row in rows if key is None or _key(row) == key]


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)
