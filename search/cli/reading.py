"""What commands that read a database share. Imports no torch, ray or optuna."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from search.store.reader import Reader


@contextmanager
def reading(db: str | None) -> Iterator[Reader]:
    """One transaction on an existing database, closed again at the end. Raises UserError, as `open_store` does."""
    from search.store.session import open_store

    store = open_store(db, create=False)
    try:
        with store.read() as reader:
            yield reader
    finally:
        store.close()


def print_json(value: Any) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, allow_nan=False))
