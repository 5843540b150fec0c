"""Who waits for a search to change, and the one look a second at the database that serves them all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import anyio.to_thread

from search.errors import UserError
from search.store.read import revision
from search.store.readonly import ReadOnlyStore

SECONDS = 1.0  # between two looks at the database


@dataclass(frozen=True)
class Seen:
    """revisions: by search; none of them while the database is missing or unreadable. state: `read`, or why not. queue:
    the revision of that."""

    revisions: Mapping[str, str] = field(default_factory=dict)
    state: str = "read"
    queue: str = ""

    def of(self, name: str | None) -> str:
        """The revision of one search, or of all; another one when it can no longer be read."""
        if name is None:
            return revision.revision_of_all(dict(self.revisions) | {"": self.state, "/": self.queue})
        return self.revisions.get(name, f"none: {self.state}")


@dataclass(frozen=True)
class Change:
    """revision: what is there now. searches: the names of those that have changed since the last change."""

    revision: str
    searches: tuple[str, ...]


def look(store: ReadOnlyStore) -> Seen:
    """The revisions of all searches, as the database has them now."""
    try:
        with store.read() as reader:
            return Seen(revision.revisions(reader), queue=revision.revision_of_queue(reader))
    except (UserError, ValueError) as error:  # ValueError: rows that cannot be understood
        return Seen(state=type(error).__name__)


class Changes:
    """Looks at a database while anybody listens. Used from one event loop."""

    def __init__(self, store: ReadOnlyStore, seconds: float = SECONDS) -> None:
        self._store = store
        self._seconds = seconds
        self._seen: Seen | None = None
        self._next = asyncio.Event()
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def follow(self, name: str | None, since: str | None = None) -> AsyncIterator[Change]:
        """Changes of one search, or of all of them, until `close`.

        since: the revision that the listener knows; a change is told at once if it is not the present one. None: the
        present one.
        """
        before: Mapping[str, str] = {}
        async with self._looking():
            while self._task is not None and not self._closed:
                seen, event = self._seen, self._next
                if seen is not None:
                    now = seen.of(name)
                    if since is not None and now != since:
                        yield Change(now, _changed(before, seen.revisions, name))
                    since, before = now, seen.revisions
                await event.wait()

    def close(self) -> None:
        """Ends all that `follow`, as the server is about to end."""
        self._closed = True
        self._next.set()

    @contextlib.asynccontextmanager
    async def _looking(self) -> AsyncIterator[None]:
        self._listeners += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look_again_and_again())
        try:
            yield
        finally:
            self._listeners -= 1
            if self._listeners == 0 and self._task is not None:
                self._task.cancel()
                self._task, self._seen = None, None

    async def _look_again_and_again(self) -> None:
        try:
            while True:
                seen = await anyio.to_thread.run_sync(look, self._store, abandon_on_cancel=True)
                if seen != self._seen:
                    self._seen = seen
                    self._wake()
                await asyncio.sleep(self._seconds)
        finally:
            if self._task is asyncio.current_task():  # it failed: streams end rather than wait for ever
                self._task, self._seen = None, None
                self._wake()

    def _wake(self) -> None:
        self._next.set()
        self._next = asyncio.Event()


def _changed(before: Mapping[str, str], now: Mapping[str, str], name: str | None) -> tuple[str, ...]:
    if name is not None:
        return (name,)
    return tuple(sorted(key for key in {*before, *now} if before.get(key) != now.get(key)))
