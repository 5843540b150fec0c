"""`submit`: a search into the queue, for a runner to take up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from search import hints
from search.cli.options import Database, Json, Set


def submit(
    path: Annotated[
        str, typer.Argument(metavar="SEARCH.YAML", help="The search's YAML file; - for standard input.")
    ],
    priority: Annotated[int, typer.Option("--priority", help="From 0 to 9; higher ones go first.")] = 5,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="HH:MM-HH:MM", help="Hours of the day to run in: 22:00-07:00."),
    ] = None,
    overrides: Set = None,
    as_json: Json = False,
    db: Database = None,
) -> None:
    """Queue a search; a runner, as `serve` has one, begins it when its turn comes."""
    import sys
    from dataclasses import asdict

    from search import config, submitting
    from search.cli.reading import print_json

    given = overrides or ()
    found = config.load_text(sys.stdin.read(), given) if path == "-" else config.load(Path(path), given)
    done = submitting.submit(found, db, priority, window)
    if as_json:
        print_json(asdict(done))
        return
    hours = f", only from {done.window.replace('-', ' to ')}" if done.window else ""
    typer.echo(f"search {done.name} is queued with priority {done.priority}{hours}; {done.before} before it")
    if not done.has_runner:
        typer.echo(f"nobody works the queue now; start a runner: {hints.command('serve')}")
