"""Store: the one door to a database. Light to import and read with; SQLAlchemy comes with the first write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from search import hints
from search.errors import UserError
from search.store.location import Location, locate, refuse_network_disk
from search.store.migrations import HEAD, REVISIONS, VERSION_TABLE
from search.store.reader import Reader, ReaderPool, connect_postgres, connect_sqlite

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

    from search.store.engine import Writer

T = TypeVar("T")


class Store:
    """One open database. Safe to share between threads, not between processes; opening it again is cheap."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._readers = ReaderPool(location)
        self._engine: Engine | None = None
        self._writer: Writer | None = None
        self._inode: int | None = None

    @property
    def url(self) -> str:
        """As SQLAlchemy reads it; holds the password, if there is one. `location.label` is for messages."""
        return self.location.url

    @property
    def artifacts_root(self) -> Path:
        """`<database>.artifacts`, or ./paretovit.artifacts for PostgreSQL."""
        return self.location.artifacts_root

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine for writing, made at its first use."""
        if self._engine is None:
            from search.store.engine import make_engine

            self._engine = make_engine(self.location)
        return self._engine

    @property
    def optuna_url(self) -> str:
        """The same database, for `optuna.storages.RDBStorage(url, engine_kwargs=...)`."""
        return self.location.url

    @property
    def optuna_engine_kwargs(self) -> dict[str, Any]:
        """Small pools and long patience, as for our own writes."""
        from search.store.engine import engine_settings

        return engine_settings(self.location)

    def write(self, fn: Callable[[Session], T]) -> T:
        """`fn(session)` in one write transaction; its result after the commit.

        `fn` runs again from its start when the database was locked or the connection lost, so it must change
        nothing but the session. Objects that it returns stay readable. Not to be called inside another write.
        """
        if self._writer is None:
            from search.store.engine import Writer

            self._writer = Writer(self.engine, self.location.label)
        return self._writer.write(fn)

    def read(self) -> AbstractContextManager[Reader]:
        """A read-only transaction that sees one state, for the functions of `search.store.read`.

        Those take the SQLAlchemy session of `write` as well.
        """
        return self._readers.read()

    def check_there(self) -> None:
        """Raises UserError when the file of an SQLite database has been removed, or another put in its place."""
        path = self.location.path
        if path is None:
            return
        found = path.stat().st_ino if path.exists() else None
        if self._inode is None:
            self._inode = found
        if found is None or found != self._inode:
            raise UserError(
                f"{path}: was removed or replaced while it was in use; what has been found since cannot be kept there"
            )

    def close(self) -> None:
        """Closes all connections. The store may be used again afterwards."""
        self._readers.close()
        if self._engine is not None:
            self._engine.dispose()


def open_store(db: str | None, *, create: bool) -> Store:
    """The database at `db`, else PARETOVIT_DB, else ./paretovit.db, brought to the current version.

    db: path or URL. create: make what is missing. Raises UserError for a database that is missing,
    not one of ours, unreadable, unwritable, newer than this paretovit, or on a network file system.
    """
    location = locate(db)
    if location.path is not None:
        try:
            _check_path(location.path, create=create)
        except OSError as error:
            raise UserError(f"{location.path}: {error.strerror}; give --db another path") from error
    version = _version(location)
    if version == HEAD:
        return Store(location)
    if version is None and not create:
        raise UserError(f"{location.label}: holds no searches of paretovit; give --db the right database")
    if version is not None and version not in REVISIONS:
        raise UserError(
            f"{location.label}: was written by a newer paretovit (version {version}, this one knows {HEAD}); "
            "update with: pip install --upgrade paretovit"
        )
    store = Store(location)
    _migrate(store)
    return store


def _check_path(path: Path, *, create: bool) -> None:
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give --db the path of a database file")
    if not path.exists() and not create:
        raise UserError(
            f"{path}: no such database; give --db PATH, or start a search with: "
            f"{hints.command('run', 'search.yaml')}"
        )
    if not path.parent.is_dir():
        raise UserError(f"{path}: its folder does not exist; make it with: mkdir -p {path.parent}")
    refuse_network_disk(path)


def _version(location: Location) -> str | None:
    """Version of our tables; None when there are none. Raises UserError for what cannot be read."""
    if location.path is not None:
        return _sqlite_version(location, location.path)
    return _postgres_version(location)


def _sqlite_version(location: Location, path: Path) -> str | None:
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        connection = connect_sqlite(location)
        try:
            found = connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)
            ).fetchone()
            row = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() if found else None
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise UserError(_sqlite_remedy(path, error)) from error
    return row[0] if row else None


def _sqlite_remedy(path: Path, error: BaseException) -> str:
    if "not a database" in str(error) or "malformed" in str(error):
        return f"{path}: {error}; give --db another path, or restore this file from a copy"
    return f"{path}: {error}; paretovit must be able to read and write this file and its folder"


def _postgres_version(location: Location) -> str | None:
    connection = connect_postgres(location)
    try:
        found = connection.execute("SELECT to_regclass(%s)", (VERSION_TABLE,)).fetchone()
        if found[0] is None:
            return None
        row = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        return row[0] if row else None
    finally:
        connection.close()


def _migrate(store: Store) -> None:
    from sqlalchemy.exc import DBAPIError

    from search.store.migrations.upgrade import upgrade

    try:
        upgrade(store.engine)
    except UserError as error:
        store.close()
        raise UserError(f"{store.location.label}: {error}") from None
    except DBAPIError as error:
        store.close()
        if store.location.path is not None:
            raise UserError(_sqlite_remedy(store.location.path, error.orig or error)) from error
        reason = " ".join(str(error.orig).split())
        raise UserError(
            f"{store.location.label}: {reason}; paretovit must be allowed to make tables"
        ) from error
