"""Runs Alembic from code, beside Optuna's tables and its `alembic_version` in the same database."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, inspect, text

from search import lease
from search.errors import UserError
from search.store.migrations import HEAD, VERSION_TABLE
from search.store.models import Base

_LOCK = 7_270_385_461  # of PostgreSQL's advisory locks, the one that means "paretovit migrates"


def upgrade(engine: Engine) -> None:
    """Brings the tables to the newest version in one transaction. Several processes may call it at once.

    Raises UserError where a process of an older version works on them: it would not know its own tables any more.
    """
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        if at_work := _at_work(connection):
            raise UserError(at_work)
        command.upgrade(alembic_config(connection), "head")


def _at_work(connection: Connection) -> str | None:
    """Who works on tables of an older version, and what to do; None where nobody does."""
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE not in tables or _version(connection) in (None, HEAD):
        return None
    for table, what in (("search", "drives search {name!r}"), ("runner", "runs the queue")):
        for row in connection.execute(text(f"SELECT * FROM {table}")) if table in tables else ():
            if lease.alive(cast(lease.Leased, row)):
                doing = what.format(name=getattr(row, "name", None))
                return (
                    f"the database is of an older paretovit, which {doing} now (process {row.owner_pid} on "
                    f"{row.owner_host}); bringing it forward would end that: wait until it has ended"
                )
    return None


def _version(connection: Connection) -> str | None:
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for our packaged scripts on an open connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def settings() -> dict[str, Any]:
    """What a migration context needs: our own version table, and blindness for tables that are not ours."""
    return {
        "target_metadata": Base.metadata,
        "version_table": VERSION_TABLE,
        "include_name": _is_ours,
        "transactional_ddl": True,
        "compare_type": True,
    }


def _is_ours(name: str | None, kind: str, _parents: Any) -> bool:
    return kind != "table" or name in Base.metadata.tables
