"""`/`: all searches, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse, JSONResponse

from dashboards.live import Seen
from dashboards.pages.rendering import Live, live, page, update
from dashboards.reading import MaybeReading, MayWrite, store_of
from dashboards.search_list import Entry, entry
from search import waiting
from search.store.read.revision import revision_of_queue, revisions
from search.store.read.searches import searches
from search.store.reader import Reader
from search.store.readonly import DatabaseMissing, ReadOnlyStore

PAGE = 50
MOST_REMEMBERED = 1000
_MISSING = Seen(state=DatabaseMissing.__name__)
_remembered: dict[tuple[str, str, str], Entry] = {}  # by database, search and revision

router = APIRouter(include_in_schema=False)
Number = Annotated[int, Query(alias="page", ge=1, le=10**6)]
Database = Annotated[ReadOnlyStore, Depends(store_of)]


@router.get("/")
def show(reader: MaybeReading, store: Database, writes: MayWrite, number: Number = 1) -> HTMLResponse:
    found = _found(reader, store.location.label, number, writes)
    source = f"/data?page={number}"
    return page(
        "searches.html", found, title="Searches", source=source, stream="/api/changes", may_write=writes
    )


@router.get("/data")
def data(reader: MaybeReading, store: Database, writes: MayWrite, number: Number = 1) -> JSONResponse:
    return update(_found(reader, store.location.label, number, writes))


def _found(reader: Reader | None, database: str, number: int, may_write: bool) -> Live:
    known = {} if reader is None else revisions(reader)
    values = {
        "entries": [] if reader is None else _entries(reader, database, known, (number - 1) * PAGE),
        "database": database,
        "is_there": reader is not None,
        "queue": {"has_runner": False, "queue": []} if reader is None else waiting.view(reader),
        "may_write": may_write,
        "newer": number - 1,
        "older": number + 1 if len(known) > number * PAGE else 0,
    }
    seen = Seen(known, queue=revision_of_queue(reader)) if reader is not None else _MISSING
    return live(seen.of(None), ("queue", "searches"), values)


def _entries(reader: Reader, database: str, known: Mapping[str, str], offset: int) -> list[Entry]:
    """Those of one page; a search that has not changed is not looked at again."""
    found = []
    for search in searches(reader, limit=PAGE, offset=offset):
        key = (database, search.name, known[search.name])
        if key not in _remembered:
            if len(_remembered) >= MOST_REMEMBERED:
                _remembered.clear()
            _remembered[key] = entry(reader, search)
        found.append(_remembered[key])
    return found
