"""What commands that read a database share. Imports no torch, ray or optuna."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from search.store.reader import Reader
    from search.store.readonly import ReadOnlyStore
    from search.store.session import Store


@contextmanager
def reading(db: str | None) -> Iterator[Reader]:
    """One transaction on an existing database, closed again at the end. Raises UserError, as `open_store` does.

    A file that this process may only read is left as it is; any other is brought to the current version first.
    """
    store = _open(db)
    try:
        with store.read() as reader:
            yield reader
    finally:
        store.close()


def _open(db: str | None) -> Store | ReadOnlyStore:
    from search.store.location import locate, refuse_network_disk
    from search.store.readonly import ReadOnlyStore, may_read_only
    from search.store.session import open_store

    location = locate(db)
    if location.path is None or not may_read_only(location.path):
        return open_store(db, create=False)
    refuse_network_disk(location.path)
    return ReadOnlyStore(location)


def print_json(value: Any) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, allow_nan=False))
