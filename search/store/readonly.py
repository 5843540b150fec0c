"""Looking at a database that others write, or that is not there yet, without ever changing it.

Every reading opens the database anew: it may appear, be moved or be replaced between two of them. Nothing is made,
migrated or checkpointed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from search.errors import UserError
from search.store.location import Location
from search.store.migrations import HEAD, REVISIONS, VERSION_TABLE
from search.store.reader import Reader, connect_postgres

PATIENCE_SECONDS = 5.0  # with a lock, before a reading gives up


class DatabaseMissing(UserError):
    """There is no database yet."""


class DatabaseUnreadable(UserError):
    """It is there, and cannot be read now: locked, damaged, of another version, or none of ours."""


class ReadOnlyStore:
    """One place where a database may be. Safe to share between threads."""

    def __init__(self, location: Location) -> None:
        self.location = location

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """A read-only transaction that sees one state, for the functions of `search.store.read`.

        Raises DatabaseMissing, or DatabaseUnreadable, in a line that says what to do; also while it is read.
        """
        try:
            with closing(self._connect()) as connection:
                reader = Reader(connection, is_sqlite=self.location.is_sqlite)
                self._check_version(reader)
                yield reader
        except self._errors() as error:
            raise DatabaseUnreadable(self._remedy(error)) from error

    def _connect(self) -> Any:
        if not self.location.is_sqlite:
            connection = connect_postgres(self.location)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return connection
        path = self.location.path
        assert path is not None
        if not path.is_file() or path.stat().st_size == 0:
            raise DatabaseMissing(f"{path}: no database yet; start a search with: paretovit run search.yaml")
        connection = _open(f"{path.as_uri()}?mode=ro")
        connection.execute("BEGIN")
        return connection

    def _check_version(self, reader: Reader) -> None:
        exists = "SELECT 1 FROM sqlite_master WHERE name = :name"
        if not self.location.is_sqlite:
            exists = "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass(:name)"
        there = reader.rows(exists, name=VERSION_TABLE)
        rows = reader.rows(f"SELECT version_num FROM {VERSION_TABLE}") if there else []
        version = rows[0]["version_num"] if rows else None
        label = self.location.label
        if version is None:
            raise DatabaseUnreadable(f"{label}: holds no searches of paretovit; give --db the right database")
        if version not in REVISIONS:
            raise DatabaseUnreadable(
                f"{label}: was written by a newer paretovit (version {version}, this one knows {HEAD})"
            )
        if version != HEAD:
            raise DatabaseUnreadable(f"{label}: is of version {version}; run: paretovit db upgrade")

    def _errors(self) -> tuple[type[Exception], ...]:
        if self.location.is_sqlite:
            return (sqlite3.Error, OSError)
        try:
            import psycopg
        except ImportError:
            return (OSError,)
        return (psycopg.Error, OSError)

    def _remedy(self, error: Exception) -> str:
        reason = " ".join(str(error).split())
        return f"{self.location.label}: {reason}; it cannot be read now"


def _open(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
    )
