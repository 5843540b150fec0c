"""Putting a search into the queue: the checks of `validate`, then one row that holds everything that a runner needs."""

from __future__ import annotations

import time
from dataclasses import dataclass

from search import folders, launch, queue, validate, windows
from search.config import SearchConfig
from search.errors import UsageError
from search.store.read import queue as queue_rows
from search.store.session import open_store
from search.store.write import queue as writes
from workers import plugins


@dataclass(frozen=True)
class Submitted:
    """before: how many searches will be run before it, as things stand. has_runner: whether anybody works the queue."""

    name: str
    priority: int
    window: str | None
    before: int
    has_runner: bool


def submit(
    config: SearchConfig, db: str | None, priority: int = queue.USUAL, window: str | None = None
) -> Submitted:
    """Queues a search that has not begun, in a database that is made where there is none.

    Deadlines that are no date count from the moment that it begins. Raises UsageError or UserError as `run` does,
    before anything is written.
    """
    shut = _window(window)
    if not queue.LEAST <= priority <= queue.MOST:
        raise UsageError(f"--priority: {priority} is outside {queue.LEAST} to {queue.MOST}")
    launch.refuse_taken_name(config.name, db)
    folders.new(config, db)
    validate.check_new(config, time.time())
    store = open_store(db, create=True)
    try:
        values, modules = config.to_dict(), plugins.allowed()
        row = store.write(lambda s: writes.add(s, config.name, values, modules, priority, shut))
        with store.read() as reader:
            names = [found.id for found in queue_rows.active(reader)]
            return Submitted(config.name, priority, shut, names.index(row), queue_rows.has_runner(reader))
    finally:
        store.close()


def _window(text: str | None) -> str | None:
    try:
        return None if text is None else str(windows.parse(text))
    except ValueError as error:
        raise UsageError(f"--window: {error}") from None
