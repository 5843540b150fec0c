"""Searches by name, and all of them."""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING

from search import hints
from search.errors import UserError
from search.states import SearchState
from search.store.read.rows import SearchRow
from search.store.reader import Reader, Row, changed, decode, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_COLUMNS = ", ".join(field.name for field in dataclasses.fields(SearchRow) if field.name != "stored_state")


def search_by_name(session: Reader | Session, name: str) -> SearchRow:
    """The search of that name. Raises UserError naming the nearest one there is."""
    found = fetch(session, f"SELECT {_COLUMNS} FROM search WHERE name = :name", name=name)
    if found:
        return _search(found[0])
    names = [
        row["name"] for row in fetch(session, "SELECT name FROM search ORDER BY created DESC LIMIT 1000")
    ]
    if not names:
        raise UserError(
            f"no search {name!r}: the database holds none yet; start one: {hints.command('run', 'search.yaml')}"
        )
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names[:10])}"
    raise UserError(f"no search {name!r} in the database; {hint}")


def searches(session: Reader | Session, *, limit: int | None = None, offset: int = 0) -> list[SearchRow]:
    """All searches, the newest first."""
    page = "" if limit is None else f" LIMIT {int(limit)} OFFSET {int(offset)}"
    return [_search(row) for row in fetch(session, f"SELECT {_COLUMNS} FROM search ORDER BY id DESC{page}")]


def _search(row: Row) -> SearchRow:
    stored = SearchState(row["state"])
    found = SearchRow(
        **changed(
            row,
            state=stored,
            stored_state=stored,
            config=decode("search", row, "config"),
            data=decode("search", row, "data"),
        )
    )
    if stored in (SearchState.RUNNING, SearchState.DRAINING):
        from search import lease

        if not lease.alive(found):
            return dataclasses.replace(found, state=SearchState.INTERRUPTED)
    return found
