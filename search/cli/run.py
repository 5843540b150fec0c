"""`run` and `resume`: a search from its config to its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from search import hints
from search.cli.options import Database, Set

if TYPE_CHECKING:
    from search.launch import Ended


def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The search's YAML file.")],
    overrides: Set = None,
    again: Annotated[
        bool, typer.Option("--again", help="Measure what was measured before too: --set cost.again=true.")
    ] = False,
    db: Database = None,
) -> int:
    """Run a search, to its front and its report."""
    from search import launch
    from search.cli.progress import shown
    from search.config import load

    checked = load(config, [*(overrides or ()), *(["cost.again=true"] if again else [])])
    with shown() as progress:
        ended = launch.start(checked, db, progress.line, progress.status)
    return conclude(ended, db)


def resume(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The search to go on with.")],
    overrides: Set = None,
    db: Database = None,
) -> int:
    """Go on with a search that was interrupted, stopped or paused; nothing is done twice."""
    from search.cli.asking import resumed_elsewhere

    if not overrides and (told := resumed_elsewhere(name, db)) is not None:
        typer.echo(told)
        return 0
    from search import launch
    from search.cli.progress import shown

    with shown() as progress:
        ended = launch.resume(name, overrides or (), db, progress.line, progress.status)
    return conclude(ended, db)


def conclude(ended: Ended, db: str | None) -> int:
    """Prints the front, writes the report, and returns the exit code."""
    from dashboards.report import write_report
    from search import morning
    from search.cli import look_text
    from search.errors import NoFeasibleCandidate
    from search.front import front_view
    from search.launch import INTERRUPTED
    from search.states import SearchState
    from search.store.read.searches import search_by_name
    from search.store.session import open_store

    if ended.state not in (SearchState.FINISHED, SearchState.STOPPED):
        why = f" ({ended.reason})" if ended.reason else ""
        resume = hints.command("resume", ended.search)
        typer.echo(f"search {ended.search} is {ended.state}{why}; go on with: {resume}")
        return INTERRUPTED if ended.by_user else 1
    store = open_store(db, create=False)
    try:
        with store.read() as reader:
            view = front_view(reader, search_by_name(reader, ended.search))
            path = write_report(reader, ended.search, ended.artifacts / "report.html")
            summed = morning.of(reader, view)
    finally:
        store.close()
    typer.echo(look_text.front(view, everything=False))
    typer.echo(f"report: {path}")
    told = morning.tell(summed, ended.artifacts, view.search.config.get("notify", {}).get("webhook"))
    typer.echo("\n".join(told))
    if not view.front:
        raise NoFeasibleCandidate(f"search {ended.search}: no candidate finished within its constraints")
    return 0
