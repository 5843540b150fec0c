"""Candidates and baselines of a search."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

from search.errors import UserError
from search.states import CandidateState
from search.store.read.rows import CandidateRow
from search.store.reader import Reader, Row, changed, decode, fetch
from spaces.spec import ArchSpec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_COLUMNS = ", ".join(field.name for field in dataclasses.fields(CandidateRow))


def candidates(
    session: Reader | Session,
    search_id: int,
    role: Literal["candidate", "baseline"] | None = "candidate",
    states: Collection[CandidateState] | None = None,
    *,
    after: int = 0,
    limit: int | None = None,
) -> list[CandidateRow]:
    """Candidates by number, or baselines in their order, or baselines and then candidates for role None.

    after, limit: a page, at most `limit` of those whose number is farther from 0 than `after`.
    """
    values: dict[str, Any] = {"search": search_id, "after": after}
    where = "search_id = :search AND ABS(number) > :after"
    if role is not None:
        where += " AND role = :role"
        values["role"] = role
    if states is not None:
        wanted = {f"state{i}": str(state) for i, state in enumerate(states)}
        where += f" AND state IN ({', '.join(f':{key}' for key in wanted) or 'NULL'})"
        values |= wanted
    page = "" if limit is None else f" LIMIT {int(limit)}"
    sql = f"SELECT {_COLUMNS} FROM candidate WHERE {where} ORDER BY role, ABS(number){page}"
    return [_candidate(row) for row in fetch(session, sql, **values)]


def candidate(session: Reader | Session, search_id: int, number: int) -> CandidateRow:
    """The candidate of that number; a negative one is a baseline. Raises UserError naming the numbers there
    are."""
    sql = f"SELECT {_COLUMNS} FROM candidate WHERE search_id = :search AND number = :number"
    found = fetch(session, sql, search=search_id, number=number)
    if found and number:
        return _candidate(found[0])
    sql = "SELECT MAX(number) AS last FROM candidate WHERE search_id = :search AND role = 'candidate'"
    last = fetch(session, sql, search=search_id)[0]["last"]
    there = f"there are 1 to {last}" if last else "the search has none yet"
    raise UserError(f"no candidate {number}: {there}")


def baseline(session: Reader | Session, search_id: int, name: str) -> CandidateRow:
    """The baseline of that name. Raises UserError naming those there are."""
    rows = candidates(session, search_id, "baseline")
    for row in rows:
        if row.name == name:
            return row
    raise UserError(f"no baseline {name!r}; there are: {', '.join(str(row.name) for row in rows) or 'none'}")


def teacher(session: Reader | Session, search_id: int) -> CandidateRow | None:
    """The network that the others learn from; None in a search without one."""
    sql = f"SELECT {_COLUMNS} FROM candidate WHERE search_id = :search AND role = 'teacher'"
    return next((_candidate(row) for row in fetch(session, sql, search=search_id)), None)


def find(session: Reader | Session, search_id: int, which: str) -> CandidateRow:
    """The candidate of a number (`17`, `#17`), or the baseline of a name. Raises UserError naming what there is."""
    text = which.removeprefix("#")
    if text.removeprefix("-").isdecimal() and len(text) < 10:  # more digits are no database's integer
        return candidate(session, search_id, int(text))
    if which == "teacher" and not any(
        row.name == which for row in candidates(session, search_id, "baseline")
    ):
        raise UserError("no teacher: its candidates learn from none (training.distillation)")
    return baseline(session, search_id, which)


def _candidate(row: Row) -> CandidateRow:
    intervals = {name: (low, high) for name, (low, high) in decode("candidate", row, "intervals").items()}
    return CandidateRow(
        **changed(
            row,
            point=decode("candidate", row, "point"),
            spec=ArchSpec.from_dict(decode("candidate", row, "spec")),
            analysis=decode("candidate", row, "analysis"),
            state=CandidateState(row["state"]),
            measured=decode("candidate", row, "measured"),
            intervals=intervals,
            by_rung={int(rung): values for rung, values in decode("candidate", row, "by_rung").items()},
            told=bool(row["told"]),
        )
    )
