"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from search import hints


def _remember(context: typer.Context, db: str | None) -> str | None:
    source = context.get_parameter_source("db")
    if db is not None and source is not None and source.name == "COMMANDLINE":
        hints.remember(db)
    return db


Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="PARETOVIT_DB",
        callback=_remember,
        help="Database: a file or an SQLAlchemy URL.  [./paretovit.db]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        envvar="PARETOVIT_SET",
        help="Override one setting, for example training.epochs=9.",
    ),
]
