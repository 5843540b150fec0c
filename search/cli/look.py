"""`status`, `front`, `show`, `report`: what a database says. Imports no torch, ray or optuna."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from search.cli.options import Database, Json
from search.cli.reading import print_json, reading

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="A search; without it, all searches.")]
OneName = Annotated[str, typer.Argument(metavar="NAME", help="The search.")]


def status(name: Name = None, as_json: Json = False, db: Database = None) -> None:
    """Show how searches stand: states, counts, the best so far."""
    from search import status as stands
    from search.cli import look_text

    with reading(db) as reader:
        found = [stands.status(reader, name)] if name is not None else stands.statuses(reader)
    if as_json:
        print_json(found if name is None else found[0])
        return
    typer.echo("\n\n".join(look_text.status(one) for one in found) or look_text.no_search())


def front(
    name: Name = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every candidate, not only the front.")] = False,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="ID", help="Another device that it was measured on, by id or label."
        ),
    ] = None,
    db: Database = None,
) -> None:
    """Show the front: every point with its interval and how it was measured."""
    from search.cli import look_text
    from search.errors import UsageError
    from search.front import front_view
    from search.store.read.searches import search_by_name, searches

    if as_json and as_csv:
        raise UsageError("--json and --csv: give one of them")
    if device is not None and name is None:
        raise UsageError("--device: give the NAME of the search too")
    with reading(db) as reader:
        rows = [search_by_name(reader, name)] if name is not None else searches(reader)
        views = [front_view(reader, row, device) for row in rows]
    if as_json:
        found = [view.to_dict(all=everything) for view in views]
        print_json(found if name is None else found[0])
    elif as_csv:
        typer.echo(look_text.csv(views, everything), nl=False)
    else:
        fronts = (look_text.front(view, everything) for view in views)
        typer.echo("\n\n".join(fronts) or look_text.no_search())


def show(
    name: OneName,
    candidate: Annotated[
        str, typer.Argument(metavar="CANDIDATE", help="Its number, a baseline's name, or teacher.")
    ],
    as_json: Json = False,
    db: Database = None,
) -> None:
    """Show one candidate: architecture, figures, training, measurements, attempts."""
    from search.candidate_json import candidate_dict, teacher_dict
    from search.cli import look_text
    from search.store.read.searches import search_by_name
    from search.teacher import WORD

    with reading(db) as reader:
        search = search_by_name(reader, name)
        teacher = teacher_dict(reader, search) if candidate == WORD else None
        found = candidate_dict(reader, search, candidate) if teacher is None else teacher
    if as_json:
        print_json(found)
    else:
        typer.echo(look_text.candidate(found) if teacher is None else look_text.teacher(teacher))


def report(
    name: OneName,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Where to write it.  [the search's artifacts folder]"),
    ] = None,
    db: Database = None,
) -> None:
    """Write the report: one HTML file that needs no network."""
    from dashboards.report import write_report
    from search import folders
    from search.store.read.searches import search_by_name

    with reading(db) as reader:
        row = search_by_name(reader, name)
        target = to if to is not None else folders.of_report(row, db) / "report.html"
        typer.echo(str(write_report(reader, name, target)))
