"""`delete`: a search, for good."""

from __future__ import annotations

from typing import Annotated

import typer

from search.cli.options import Database
from search.errors import UsageError


def delete(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The search.")],
    confirm: Annotated[
        str | None,
        typer.Option("--confirm", metavar="NAME", help="The name once more, instead of a question."),
    ] = None,
    db: Database = None,
) -> None:
    """Delete a search that nobody drives: its results, its checkpoints and its report."""
    import sys

    if confirm is None:
        if not sys.stdin.isatty():
            raise UsageError(f"--confirm: repeat the name to delete {name!r} for good")
        confirm = str(typer.prompt(f"Delete {name} with its results and checkpoints? Type its name"))
    from search.deleting import delete as forget
    from search.store.session import open_store

    store = open_store(db, create=False)
    try:
        typer.echo(forget(store, name, confirm))
    finally:
        store.close()
