"""Commands that messages name, as the user would type them: on the database that this command line was given, and with
the modules that it allowed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_database: ContextVar[str | None] = ContextVar("database", default=None)
_plugins: ContextVar[tuple[str, ...]] = ContextVar("plugins", default=())
_RUNS_PLUGINS = ("run", "resume")


@contextmanager
def one_command_line() -> Iterator[None]:
    """Around all that one command line does; what an earlier one was given is forgotten."""
    before, plugins = _database.set(None), _plugins.set(())
    try:
        yield
    finally:
        _database.reset(before)
        _plugins.reset(plugins)


def remember(db: str) -> None:
    """`--db` as it stands on the command line. One that the environment gives need not be typed again."""
    _database.set(db)


def remember_plugins(modules: Sequence[str]) -> None:
    """Every `--plugin` of the command line; those of the environment need not be typed again either."""
    _plugins.set(tuple(modules))


def command(*words: str) -> str:
    """`paretovit resume pics --db t.db`, to be pasted into a shell; a password of the URL shows as `***`.

    A thread that is started knows nothing of this, and a signal handler has better to do: ask before.
    """
    db = _database.get()
    plugins = _plugins.get() if words[0] in _RUNS_PLUGINS else ()
    allowed = [word for module in plugins for word in ("--plugin", module)]
    return shlex.join(
        ["paretovit", *allowed, *words, *(() if db is None else ("--db", _without_password(db)))]
    )


def _without_password(db: str) -> str:
    text = re.sub(r"(://[^/?#:@]*):[^/?#]*@", r"\1:***@", db)
    return re.sub(r"([?&]password=)[^&#]*", r"\1***", text)
