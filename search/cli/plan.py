"""`plan`: what a search will come to, before anything is spent."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import Json, Set

if TYPE_CHECKING:
    from search.forecast import Forecast


def plan(
    path: Annotated[Path, typer.Argument(metavar="SEARCH.YAML", help="The config to look at.")],
    overrides: Set = None,
    as_json: Json = False,
) -> None:
    """Tell how many candidates, jobs, epochs and hours a search comes to; trains a few networks for a moment."""
    from search import config, planning
    from search.cli.reading import print_json
    from search.launch import num_workers
    from search.validate import check_new
    from workers import device

    now = time.time()
    found = config.load(path, overrides or ())
    if found.cost.label is not None:
        raise found.error(
            "cost.device", "plan times networks on this machine alone, and this one is another node's"
        )
    checked = check_new(found, now)
    settings = checked.plan.config.search
    target = device.resolve(checked.plan.config.cost.device, checked.plan.config.cost.threads)
    workers = 1 if settings.engine == "inline" else num_workers(settings.workers, target)
    timed = planning.time_here(checked.plan, lambda text: typer.echo(text, err=True))
    made = planning.before(checked.plan, workers, checked.deadline, timed, now)
    if as_json:
        print_json(made.to_dict() | {"workers": workers})
        return
    typer.echo("\n".join(_lines(made, workers, checked.deadline)))


def _lines(made: Forecast, workers: int, deadline: float | None) -> list[str]:
    from search import foreseen

    jobs = "1 job at a time" if workers == 1 else f"{workers} jobs at a time"
    ends = {
        "candidates": "when all its candidates have been tried",
        "time": "when its time is up",
        "epochs": "when its budget of epochs is used up",
    }
    until = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(deadline)) if deadline else "none"
    return [
        f"candidates   {foreseen.between(made.candidates)}",
        f"jobs         {foreseen.between(made.jobs)}, {jobs}",
        f"epochs       {foreseen.between(made.epochs)}",
        f"takes        {foreseen.duration(made.hours)}",
        f"deadline     {until}",
        f"ends         {ends[made.ends_by]}",
        f"from         {made.basis}",
    ]
