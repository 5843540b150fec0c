"""Reading with SQL text over the database driver: importing SQLAlchemy costs all that `status` may spend.

Statements use `:name` for values and what SQLite and PostgreSQL have in common.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from search.errors import UserError
from search.store.location import Location

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Row = dict[str, Any]
BUSY_SECONDS = 60.0
INSTALL_POSTGRES = "PostgreSQL needs an extra: pip install 'paretovit[postgres]'"
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")


class DatabaseUnreadable(UserError):
    """It is there, and cannot be read now: locked, damaged, of another version, or none of ours."""


class Reader:
    """One read-only transaction on a consistent state of the database. Made by `Store.read`."""

    def __init__(self, connection: Any, *, is_sqlite: bool) -> None:
        self._connection = connection
        self._is_sqlite = is_sqlite

    def rows(self, sql: str, **values: Any) -> list[Row]:
        """The result of one SELECT as dicts by column name."""
        statement = sql if self._is_sqlite else _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
        cursor = self._connection.execute(statement, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def fetch(source: Reader | Session, sql: str, **values: Any) -> list[Row]:
    """Rows of one SELECT, through a Reader or a write transaction's session (flushed first)."""
    if isinstance(source, Reader):
        return source.rows(sql, **values)
    from sqlalchemy import text

    source.flush()
    return [dict(row) for row in source.execute(text(sql), values).mappings()]


def decode(table: str, row: Row, column: str) -> dict[str, Any]:
    """The JSON object in a column: SQLite returns its text, psycopg the value itself.

    row: of `table`, with its id. Raises DatabaseUnreadable naming all three where the column holds anything else.
    """
    value = row[column]
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DatabaseUnreadable(
            f"table {table}, row {row['id']}: {column} is damaged, {str(value)[:40]!r} is no JSON object; "
            "restore the database from a backup"
        )
    return found


def changed(row: Row, **columns: Any) -> Row:
    """The row with some columns read as something else."""
    return row | columns


class ReaderPool:
    """Connections for reading, one a concurrent reader; idle ones are kept, at most one."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._begin = "BEGIN" if location.is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        self._idle: list[Any] = []
        self._lock = threading.Lock()

    @contextmanager
    def read(self) -> Iterator[Reader]:
        connection = self._take()
        try:
            connection.execute(self._begin)
            yield Reader(connection, is_sqlite=self._location.is_sqlite)
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        with self._lock:
            spare = bool(self._idle)
            if not spare:
                self._idle.append(connection)
        if spare:
            connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Any:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if self._location.is_sqlite:
            return connection or connect_sqlite(self._location)
        return (
            connection
            if connection is not None and _answers(connection)
            else connect_postgres(self._location)
        )


def connect_sqlite(location: Location) -> sqlite3.Connection:
    """A connection that cannot write. Raises sqlite3.OperationalError when there is no such file."""
    assert location.path is not None
    connection = sqlite3.connect(
        location.path.as_uri() + "?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA query_only=ON")
    return connection


def connect_postgres(location: Location) -> Any:
    """A psycopg connection for reading. Raises UserError without the driver, and when the server refuses."""
    try:
        import psycopg
    except ImportError as error:
        raise UserError(INSTALL_POSTGRES) from error
    try:
        return psycopg.connect(location.conninfo, autocommit=True, connect_timeout=10)
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{location.label}: {reason}; check that it runs, and user and password") from error


def _answers(connection: Any) -> bool:
    import psycopg

    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        connection.close()
        return False
    return True
