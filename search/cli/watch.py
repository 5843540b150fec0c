"""`watch`: a search in plain lines, from any terminal, until nothing more comes."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from search.cli.options import Database

SECONDS = 1.0


def watch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The search.")],
    db: Database = None,
) -> int:
    """Follow a search, line by line, until it ends; Ctrl-C leaves it running."""
    from search import watching
    from search.cli.reading import reading
    from search.store.location import locate
    from search.store.readonly import DatabaseUnreadable, ReadOnlyStore

    with reading(db) as reader:  # brought to this version, or refused with the reason
        found = watching.look(reader, name, watching.Seen())
    store = ReadOnlyStore(locate(db))
    while True:
        for moment, text in found.lines:
            typer.echo(f"{time.strftime('%H:%M:%S', time.localtime(moment))} {text}")
        if found.code is not None:
            return found.code
        time.sleep(SECONDS)
        try:
            with store.read() as reader:
                found = watching.look(reader, name, found.seen)
        except DatabaseUnreadable as error:
            found = watching.Look(found.seen, ((None, str(error)),))
