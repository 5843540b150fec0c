"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Database = Annotated[
    str | None,
    typer.Option(
        "--db", envvar="PARETOVIT_DB", help="Database: a file or an SQLAlchemy URL.  [./paretovit.db]"
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
