"""What gives a route its read session: `reader: Reading`, or `reader: MaybeReading` where no database is fine.

A session is one consistent state of the database, and ends before the response is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request

from search.store.reader import Reader
from search.store.readonly import DatabaseMissing, ReadOnlyStore


def store_of(request: Request) -> ReadOnlyStore:
    """The database that this dashboard looks at."""
    return request.app.state.store


def _reader(store: Annotated[ReadOnlyStore, Depends(store_of)]) -> Iterator[Reader]:
    with store.read() as reader:
        yield reader


def _reader_or_none(store: Annotated[ReadOnlyStore, Depends(store_of)]) -> Iterator[Reader | None]:
    try:
        with store.read() as reader:
            yield reader
    except DatabaseMissing:
        yield None


def _may_write(request: Request) -> bool:
    return request.app.state.may_write


MayWrite = Annotated[bool, Depends(_may_write)]
"""Whether this dashboard lets people ask something of searches."""

Reading = Annotated[Reader, Depends(_reader, scope="function")]
MaybeReading = Annotated[Reader | None, Depends(_reader_or_none, scope="function")]
