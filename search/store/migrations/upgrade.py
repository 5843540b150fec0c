"""Runs Alembic from code, beside Optuna's tables and its `alembic_version` in the same database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, text

from search.store.migrations import VERSION_TABLE
from search.store.models import Base

_LOCK = 7_270_385_461  # of PostgreSQL's advisory locks, the one that means "paretovit migrates"


def upgrade(engine: Engine) -> None:
    """Brings the tables to the newest version in one transaction. Several processes may call it at once."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        command.upgrade(alembic_config(connection), "head")


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
