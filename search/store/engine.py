"""Writing through SQLAlchemy: engines, and transactions that survive locks and lost connections.

SQLite: WAL, synchronous=FULL, foreign keys, BEGIN IMMEDIATE by the recipe of SQLAlchemy's SQLite page ("Using
SQLAlchemy to emit BEGIN"), which works on every Python; sqlite3's `autocommit` attribute needs 3.12.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import tenacity
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from search.errors import UserError
from search.store.location import Location
from search.store.reader import BUSY_SECONDS, INSTALL_POSTGRES

T = TypeVar("T")
NUM_TRIES = 12  # waits of 0.1 s, doubling, 5 s at most: about 40 s in all
_PASSING_STATES = ("08", "40001", "40P01", "53300", "57P01", "57P02", "57P03")
_dumps = functools.partial(json.dumps, allow_nan=False)


class UncertainCommit(Exception):
    """The connection was lost during COMMIT: only the server knows whether `number` was committed."""

    def __init__(self, number: int, result: Any) -> None:
        super().__init__(f"lost the connection while committing transaction {number}")
        self.number = number
        self.result = result


def make_engine(location: Location) -> Engine:
    """An engine whose every transaction writes. Raises UserError without the PostgreSQL driver."""
    try:
        engine = create_engine(location.url, json_serializer=_dumps, **engine_settings(location))
    except ImportError as error:
        raise UserError(INSTALL_POSTGRES) from error
    if location.is_sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
    return engine


def engine_settings(location: Location) -> dict[str, Any]:
    """Arguments of `create_engine` that let many processes use one database; for Optuna's storage too."""
    settings: dict[str, Any] = {"pool_size": 1, "max_overflow": 1, "pool_timeout": 2 * BUSY_SECONDS}
    if location.is_sqlite:
        return settings | {"connect_args": {"timeout": BUSY_SECONDS}}
    return settings | {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}


class Writer:
    """Runs functions in write transactions, each exactly once as far as the database shows."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._inside = threading.local()

    def write(self, fn: Callable[[Session], T]) -> T:
        """`fn(session)` in one transaction, committed; run again whole after a lock or a lost connection."""
        assert not getattr(self._inside, "busy", False), "a write inside a write would wait for itself"
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(NUM_TRIES),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=5),
            retry=tenacity.retry_if_exception(_will_pass),
            reraise=True,
        )
        self._inside.busy = True
        try:
            return retrying(lambda: self._once_or_known(fn))
        finally:
            self._inside.busy = False

    def _once_or_known(self, fn: Callable[[Session], T]) -> T:
        try:
            return self._once(fn)
        except UncertainCommit as lost:
            if self._was_committed(lost.number):
                return lost.result
            return self._once(fn)

    def _once(self, fn: Callable[[Session], T]) -> T:
        with Session(self._engine, expire_on_commit=False) as session:
            result = fn(session)
            session.flush()
            if self._engine.dialect.name != "postgresql":
                session.commit()
                return result
            number = session.scalar(text("SELECT txid_current()"))
            try:
                session.commit()
            except DBAPIError as error:
                if _will_pass(error) and number is not None:
                    raise UncertainCommit(number, result) from error
                raise
            return result

    def _was_committed(self, number: int) -> bool:
        """Asks the server, waiting while it restarts or still works on the transaction."""
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(4 * NUM_TRIES),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=2),
            retry=tenacity.retry_if_exception(_will_pass)
            | tenacity.retry_if_result(lambda s: s == "in progress"),
            reraise=True,
        )
        return retrying(self._status, number) == "committed"

    def _status(self, number: int) -> str | None:
        with self._engine.connect() as connection:
            return connection.scalar(text("SELECT txid_status(:number)"), {"number": number})


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_immediate(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _will_pass(error: BaseException) -> bool:
    """Whether the same write may succeed later: a lock, a lost connection, a server that restarts."""
    if not isinstance(error, OperationalError | InterfaceError):
        return isinstance(error, DBAPIError) and error.connection_invalidated
    if error.connection_invalidated or "database is locked" in str(error.orig):
        return True
    if type(error.orig).__module__.startswith("psycopg"):
        state = getattr(error.orig, "sqlstate", None)
        return state is None or state.startswith(_PASSING_STATES)
    return False
