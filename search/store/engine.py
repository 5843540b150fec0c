"""Writing through SQLAlchemy: engines, and transactions that survive locks and lost connections.

SQLite: WAL, synchronous=FULL, foreign keys, BEGIN IMMEDIATE by the recipe of SQLAlchemy's SQLite page ("Using
SQLAlchemy to emit BEGIN"), which works on every Python; sqlite3's `autocommit` attribute needs 3.12.
"""

from __future__ import annotations

import functools
import json
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import tenacity
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from search import hints
from search.errors import UserError
from search.store.location import Location
from search.store.reader import BUSY_SECONDS, INSTALL_POSTGRES

T = TypeVar("T")
PATIENCE_SECONDS = 2 * BUSY_SECONDS  # a server may take a minute to restart
_PASSING_STATES = ("08", "40001", "40P01", "53300", "57P01", "57P02", "57P03")
_KEEP_SECONDS = 7 * 86_400.0  # of dead threads' counters
_dumps = functools.partial(json.dumps, allow_nan=False)


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
    settings: dict[str, Any] = {"pool_size": 1, "max_overflow": 1, "pool_timeout": PATIENCE_SECONDS}
    if location.is_sqlite:
        return settings | {"connect_args": {"timeout": BUSY_SECONDS}}
    return settings | {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}


class Writer:
    """Runs functions in write transactions, each exactly once as far as the database shows.

    A connection that is lost during COMMIT leaves open whether it was done. On PostgreSQL each thread therefore
    counts its writes in a row of table `writer`, inside the same transactions: a repetition that finds its number
    there knows that it was. (`txid_status` cannot tell: a crash may give the same transaction number twice.)
    """

    def __init__(self, engine: Engine, label: str) -> None:
        self._label = label
        self._engine = engine
        self._thread = threading.local()

    def write(self, fn: Callable[[Session], T]) -> T:
        """`fn(session)` in one transaction, committed; run again whole after a lock or a lost connection."""
        assert not getattr(self._thread, "busy", False), "a write inside a write would wait for itself"
        counter = self._next_number() if self._engine.dialect.name == "postgresql" else None
        results: list[T] = []
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_delay(PATIENCE_SECONDS),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=2),
            retry=tenacity.retry_if_exception(_will_pass),
            reraise=True,
        )
        self._thread.busy = True
        try:
            return retrying(lambda: self._once(fn, counter, results))
        except OperationalError as error:
            if (reason := no_room(error)) is not None:
                raise UserError(
                    f"{self._label}: {reason}; mend that, then: {hints.command('resume', 'NAME')}"
                ) from error
            raise
        finally:
            self._thread.busy = False

    def _next_number(self) -> Counter:
        last = getattr(self._thread, "counter", None) or Counter(uuid.uuid4().hex, 0)
        self._thread.counter = Counter(last.id, last.number + 1)
        return self._thread.counter

    def _once(self, fn: Callable[[Session], T], counter: Counter | None, results: list[T]) -> T:
        """One try. results: of the tries whose COMMIT was sent, the last of which may have been done."""
        with Session(self._engine, expire_on_commit=False) as session:
            if counter is not None and not _count(session, counter):
                return results[-1]
            result = fn(session)
            session.flush()
            results.append(result)
            session.commit()
            return result


class Counter(NamedTuple):
    """id: of one thread of one process. number: of its write, from 1."""

    id: str
    number: int


def _count(session: Session, counter: Counter) -> bool:
    """Notes the write's number. False when it is there: waits for an earlier try that the server is still at."""
    if counter.number == 1:
        session.execute(text("DELETE FROM writer WHERE time < :old"), {"old": time.time() - _KEEP_SECONDS})
    statement = """
        INSERT INTO writer (id, number, time) VALUES (:id, :number, :time)
        ON CONFLICT (id) DO UPDATE SET number = excluded.number, time = excluded.time
        WHERE writer.number < excluded.number RETURNING id"""
    return session.scalar(text(statement), counter._asdict() | {"time": time.time()}) is not None


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_immediate(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def no_room(error: OperationalError) -> str | None:
    """What is wrong with the disk that the database is on, or None where it is something else."""
    text = str(error.orig)
    if "disk is full" in text or getattr(error.orig, "sqlstate", None) == "53100":
        return "no space left on its disk"
    return "its disk cannot be read or written" if "disk I/O error" in text else None


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
