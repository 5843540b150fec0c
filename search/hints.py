"""Commands that messages name, as the user would type them: on the database that this command line was given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_database: ContextVar[str | None] = ContextVar("database", default=None)


@contextmanager
def one_command_line() -> Iterator[None]:
    """Around all that one command line does; what an earlier one was given is forgotten."""
    before = _database.set(None)
    try:
        yield
    finally:
        _database.reset(before)


def remember(db: str) -> None:
    """`--db` as it stands on the command line. One that the environment gives need not be typed again."""
    _database.set(db)


def command(*words: str) -> str:
    """`paretovit resume pics --db t.db`, to be pasted into a shell; a password of the URL shows as `***`.

    A thread that is started knows nothing of this, and a signal handler has better to do: ask before.
    """
    db = _database.get()
    return shlex.join(["paretovit", *words, *(() if db is None else ("--db", _without_password(db)))])


def _without_password(db: str) -> str:
    text = re.sub(r"(://[^/?#:@]*):[^/?#]*@", r"\1:***@", db)
    return re.sub(r"([?&]password=)[^&#]*", r"\1***", text)
