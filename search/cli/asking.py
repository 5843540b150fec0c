"""`pause`, `stop`: what is asked of a search that runs or waits. Imports no torch, ray or optuna."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import Database

if TYPE_CHECKING:
    from search.requests import Asked

Name = Annotated[str, typer.Argument(metavar="NAME", help="The search.")]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why; kept with the search.")]


def pause(name: Name, note: Note = None, db: Database = None) -> None:
    """Pause a search: trainings end with their epoch, and go on from there when it is resumed."""
    from search.requests import Ask, Asked

    _ask(name, db, Asked(Ask.PAUSE, text=note or ""))


def stop(
    name: Name,
    now: Annotated[
        bool, typer.Option("--now", help="Do not wait for running jobs: trainings end with their epoch.")
    ] = False,
    note: Note = None,
    db: Database = None,
) -> None:
    """End a search early: what runs is brought to its end, then its report is written."""
    from search.requests import Ask, Asked

    _ask(name, db, Asked(Ask.STOP, now=now, text=note or ""))


def resumed_elsewhere(name: str, db: str | None) -> str | None:
    """Who goes on with a search, in a line: its driver, or a runner; None where it is to be driven here."""
    from search import requests
    from search.requests import Ask, Asked
    from search.store.read import queue
    from search.store.session import open_store

    store = open_store(db, create=False)
    try:
        told = store.write(lambda s: requests.ask(s, name, Asked(Ask.RESUME)))
        with store.read() as reader:
            is_queued = any(row.name == name for row in queue.active(reader))
            if told is None and is_queued and queue.has_runner(reader):
                return f"search {name!r} is in the queue again; its runner goes on with it"
        return told
    finally:
        store.close()


def _ask(name: str, db: str | None, asked: Asked) -> None:
    from search import requests
    from search.store.session import open_store

    store = open_store(db, create=False)
    try:
        typer.echo(store.write(lambda s: requests.ask(s, name, asked)))
    finally:
        store.close()
