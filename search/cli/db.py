"""`paretovit db`: look after the database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from search.cli.command import Command, Group
from search.cli.options import Database
from search.errors import UsageError, UserError

app = typer.Typer(cls=Group, help="Look after the database.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def _start(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("info", cls=Command)
def info(db: Database = None) -> None:
    """Show where the database is, its version and what it holds."""
    from search.store.migrations import HEAD
    from search.store.read.searches import searches
    from search.store.session import open_store

    store = open_store(db, create=False)
    with store.read() as session:
        rows = searches(session)
    print(f"database   {store.location.label}")
    print(f"version    {HEAD}")
    print(f"artifacts  {store.artifacts_root}")
    if store.location.path is not None:
        print(f"size       {store.location.path.stat().st_size / 1e6:.1f} MB")
    print(f"searches   {', '.join(row.name for row in rows) or 'none'}")
    store.close()


@app.command("upgrade", cls=Command)
def upgrade(db: Database = None) -> None:
    """Bring the database to this program's version, as every other command does too."""
    from search.store.migrations import HEAD
    from search.store.session import open_store

    store = open_store(db, create=False)
    print(f"{store.location.label}: is at version {HEAD}")
    store.close()


@app.command("backup", cls=Command)
def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; checkpoints are not copied.")],
    db: Database = None,
) -> None:
    """Copy an SQLite database, also while a search writes to it."""
    from search.store.backup import copy_sqlite
    from search.store.location import locate

    location = locate(db)
    if location.path is None:
        raise UsageError(f"{location.label}: is no SQLite file; use pg_dump")
    if not location.path.is_file():
        raise UserError(f"{location.label}: no such database; give --db PATH")
    if to.exists():
        raise UsageError(f"{to}: is there already, and is not overwritten; name another file")
    copy_sqlite(location.path, to)
    print(f"wrote {to}")
