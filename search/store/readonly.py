"""Looking at a database that others write, or that is not there yet, without ever changing it.

An SQLite file is opened anew for every reading: it may appear, be removed or be replaced between two of them, and a
connection that stays open would keep a search that ends from putting its write-ahead log away.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

from search import hints
from search.errors import UserError
from search.store.location import Location
from search.store.migrations import HEAD, REVISIONS, VERSION_TABLE
from search.store.reader import DatabaseUnreadable, Reader, ReaderPool

PATIENCE_SECONDS = 2.0  # with a lock, before a reading gives up


class DatabaseMissing(UserError):
    """There is no database yet."""


class ReadOnlyStore:
    """One place where a database may be. Safe to share between threads. Nothing is made, migrated or written."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._pool = ReaderPool(location)  # used for PostgreSQL alone, where a connection takes long to make

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """A read-only transaction that sees one state, for the functions of `search.store.read`.

        Raises DatabaseMissing or DatabaseUnreadable, in a line that says what to do; also from within the block.
        """
        try:
            with ExitStack() as stack:
                yield self._open(stack)
        except self._errors() as error:
            reason = " ".join(str(error).split())
            raise DatabaseUnreadable(f"{self.location.label}: {reason}; it cannot be read now") from error

    def close(self) -> None:
        self._pool.close()

    def _open(self, stack: ExitStack) -> Reader:
        path = self.location.path
        reading = self._pool.read() if path is None else _reading_file(path)
        try:
            reader = stack.enter_context(reading)
        except DatabaseMissing:
            raise
        except UserError as error:  # no driver, no server
            raise DatabaseUnreadable(str(error)) from error
        self._check_version(reader)
        return reader

    def _check_version(self, reader: Reader) -> None:
        there = "SELECT 1 FROM sqlite_master WHERE name = :name"
        if not self.location.is_sqlite:
            there = "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass(:name)"
        found = reader.rows(there, name=VERSION_TABLE)
        versions = reader.rows(f"SELECT version_num FROM {VERSION_TABLE}") if found else []
        version = versions[0]["version_num"] if versions else None
        label = self.location.label
        if version is None:
            raise DatabaseUnreadable(f"{label}: holds no searches of paretovit; give --db the right database")
        if version not in REVISIONS:
            raise DatabaseUnreadable(
                f"{label}: was written by a newer paretovit (version {version}, this one knows {HEAD}); "
                "update with: pip install --upgrade paretovit"
            )
        if version != HEAD:
            raise DatabaseUnreadable(
                f"{label}: is of an older version ({version}); bring it forward with: {hints.command('db', 'upgrade')}"
            )

    def _errors(self) -> tuple[type[Exception], ...]:
        """What the driver raises."""
        if self.location.is_sqlite:
            return (sqlite3.Error, OSError)
        try:
            import psycopg
        except ImportError:
            return (OSError,)
        return (psycopg.Error, OSError)


def _reading_file(path: Path) -> AbstractContextManager[Reader]:
    if path.is_dir():
        raise DatabaseUnreadable(f"{path}: is a folder; give --db the path of a database file")
    if not path.exists() or path.stat().st_size == 0:
        raise DatabaseMissing(
            f"{path}: no such database yet; start a search with: {hints.command('run', 'search.yaml')}"
        )
    return _transaction(path)


def may_read_only(path: Path) -> bool:
    """Whether this process may read a file, but not write it, or not make those beside it that SQLite needs."""
    path = Path(os.path.realpath(path))
    return _may(path, os.R_OK) and not (_may(path, os.W_OK) and _may(path.parent, os.W_OK | os.X_OK))


def _may(path: Path, what: int) -> bool:
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)


@contextmanager
def _transaction(path: Path) -> Iterator[Reader]:
    with closing(_connect(Path(os.path.realpath(path)))) as connection:
        yield Reader(connection, is_sqlite=True)


def _connect(path: Path) -> sqlite3.Connection:
    """A connection in a transaction. path: without links, for the log lies beside the file itself.

    Where we may not write, SQLite cannot make the files that go with a write-ahead log, or makes them so that those
    who may write cannot use them. Where there is no log, nobody has the database open, and it can be read as it lies
    there.
    """
    if may_read_only(path) and not path.with_name(path.name + "-wal").exists():
        return _begin(f"{path.as_uri()}?mode=ro&immutable=1")
    return _begin(f"{path.as_uri()}?mode=ro")


def _begin(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")  # takes the state that the transaction sees
    except BaseException:
        connection.close()
        raise
    return connection
