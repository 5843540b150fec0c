"""The process that works the queue off: one search at a time on a machine, each in a process of its own.

Runners of several machines may share a PostgreSQL database. A row of the queue is claimed in one transaction, with a
lease as a search has it; whoever finds a claim without a living runner takes it over. A search's process outlives its
runner, and the next one looks after it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from search import lease, queue, requests, run_process
from search.requests import RUNNER, Ask, Asked, Wanted, fold
from search.run_process import RunProcess
from search.states import QueueState, SearchState
from search.store.models import Queue, Search
from search.store.read import queue as queue_rows
from search.store.read.rows import QueueRow
from search.store.session import Store
from search.store.write import queue as writes
from search.store.write import requests as request_rows
from search.store.write import searches
from search.store.write.queue import Withdrawn
from workers import plugins

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

STEP_SECONDS = 1.0
BEAT_SECONDS = 3.0
GRACE_SECONDS = 300.0  # for a search to come to the end of its epochs as the runner ends


@dataclass(frozen=True)
class Current:
    """What this runner looks after. process: None where an earlier runner has started it. asked: for what the search
    has been asked to pause. ending: whether its process was told to end."""

    row: QueueRow
    process: RunProcess | None
    asked: str | None = None
    ending: bool = False


class Runner:
    """Works until `end`. say: told what happens, line by line."""

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self.store = store
        self.current: Current | None = None
        self._say = say
        self._owner = lease.this_process()
        self._modules = plugins.allowed()
        self._ends_at: float | None = None
        self._last_beat = 0.0
        self._silence: dict[int, tuple[int, float]] = {}

    def run(self) -> None:
        """Returns once `end` was called and nothing runs for it any more."""
        self.store.write(self._remove_dead_runners)
        while self._ends_at is None or self.current is not None:
            self.step()
            time.sleep(STEP_SECONDS)
        self.store.write(lambda s: writes.leave(s, self._owner))

    def end(self) -> None:
        """Takes nothing new; what runs is paused, for the next runner. Asked again: what runs is left at once."""
        self._ends_at = time.monotonic() + GRACE_SECONDS if self._ends_at is None else 0.0

    def step(self) -> None:
        """One look at everything."""
        self._beat()
        if self.current is None:
            if self._ends_at is None:
                self._take()
        else:
            self._look_after(self.current)

    # -- taking ----------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Takes over what a runner that is gone has left, or what is next in the queue, if the machine is free."""
        taken = self.store.write(self._claim)
        if taken is None:
            return
        row, is_driven = taken
        if is_driven:
            self._say(f"{row.name}: looks after what an earlier runner has started")
            self.current = Current(row, None)
            return
        self._say(f"{row.name}: {'goes on' if row.search_id else 'begins'}")
        root = self.store.artifacts_root
        self.current = Current(row, run_process.start(self.store.location, root, row.name, row.id, row.claim))

    def _claim(self, session: Session) -> tuple[QueueRow, bool] | None:
        """The claimed row, and whether its search is driven already."""
        locked = {row.id: row for row in writes.lock_active(session)}
        driven = {row.id: row for row in searches.owned(session) if lease.alive(row)}
        for row in locked.values():
            if row.state == QueueState.RUNNING and self._is_left(row):
                search = driven.get(row.search_id) if row.search_id is not None else None
                if search is None:
                    writes.withdraw(row)
                elif lease.is_here(search):
                    return self._claimed(session, row), True
        session.flush()
        busy = any(row.state == QueueState.RUNNING and lease.is_here(row) for row in locked.values())
        if busy or any(lease.is_here(search) for search in driven.values()):
            return None
        rows = [row for row in queue_rows.active(session) if row.search_id not in driven]
        first = queue.choose(rows, time.time(), self._modules)
        self._tell_lacking(rows, locked)
        return None if first is None else (self._claimed(session, locked[first.id]), False)

    def _claimed(self, session: Session, row: Queue) -> QueueRow:
        writes.claim(row, self._owner)
        session.flush()
        return next(found for found in queue_rows.active(session) if found.id == row.id)

    def _is_left(self, row: Queue) -> bool:
        """Whether the runner of a row is gone. One of another host is watched: its counter has to stand still."""
        if lease.is_here(row):
            return row.owner_pid == os.getpid() or not lease.alive(row)
        seen = self._silence.get(row.id)
        if seen is None or seen[0] != row.beat:
            self._silence[row.id] = (row.beat, time.monotonic())
            return False
        return time.monotonic() - seen[1] > lease.TTL_SECONDS

    def _tell_lacking(self, rows: Iterable[QueueRow], locked: dict[int, Queue]) -> None:
        for row in rows:
            lacking = queue.lacking(row, self._modules)
            if row.state is QueueState.WAITING and lacking:
                locked[row.id].reason = f"needs a runner that is started with --plugin {lacking[0]}"

    # -- looking after ---------------------------------------------------------------------------------------

    def _look_after(self, current: Current) -> None:
        code = None if current.process is None else current.process.code
        row, rows, is_driven = self.store.write(lambda s: self._seen(s, current.row))
        if row is None:
            self._leave_alone(current, code)
        elif code is not None or (current.process is None and not is_driven):
            self._settle(current, code)
        else:
            self.current = replace(current, row=row)
            self._pause_where_it_must(self.current, rows, is_driven)

    def _seen(self, session: Session, row: QueueRow) -> tuple[QueueRow | None, list[QueueRow], bool]:
        """The row as it is now, None where it is no longer ours; all rows; whether its search is driven."""
        rows = queue_rows.active(session)
        mine = next((r for r in rows if (r.id, r.claim, r.state) == (row.id, row.claim, row.state)), None)
        search = session.get(Search, mine.search_id) if mine is not None and mine.search_id else None
        return mine, rows, search is not None and lease.alive(search)

    def _leave_alone(self, current: Current, code: int | None) -> None:
        """The row was withdrawn, stopped or deleted before its search was driven."""
        if current.process is None or code is not None:
            self.current = None
        elif not current.ending:
            self._terminate(current)

    def _pause_where_it_must(self, current: Current, rows: list[QueueRow], is_driven: bool) -> None:
        now = time.time()
        why = queue.why_pause(current.row, rows, now, self._modules)
        if self._ends_at is not None:
            why = "its runner was ended"
        if why is not None and current.asked is None:
            self._say(f"{current.row.name}: pauses, {why}")
            if is_driven:
                self.store.write(lambda s: self._ask_pause(s, current.row, why))
            else:
                self._terminate(current)
            self.current = replace(self.current or current, asked=why)
        if self._ends_at is not None and time.monotonic() > self._ends_at and not current.ending:
            self._terminate(self.current or current, twice=True)

    def _ask_pause(self, session: Session, row: QueueRow, why: str) -> None:
        assert row.search_id is not None
        request_rows.add(session, row.search_id, Ask.PAUSE, Asked(Ask.PAUSE, True, why, RUNNER).payload())

    def _terminate(self, current: Current, *, twice: bool = False) -> None:
        """Ends a search's process: one that drives a search drains it at first, and leaves at once when told twice."""
        pid = current.process.process.pid if current.process is not None else self._driver_of(current.row)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
                if twice:
                    time.sleep(0.5)
                    os.kill(pid, signal.SIGTERM)
        self.current = replace(current, ending=True)

    def _driver_of(self, row: QueueRow) -> int | None:
        search = self.store.write(lambda s: s.get(Search, row.search_id))
        return search.owner_pid if search is not None and lease.is_here(search) else None

    # -- after -----------------------------------------------------------------------------------------------

    def _settle(self, current: Current, code: int | None) -> None:
        """Writes what becomes of the row of a run that has ended."""
        said = "" if current.process is None else current.process.said()
        try:
            told = self.store.write(lambda s: self._settled(s, current, code, said))
        except Withdrawn:
            told = "was taken out of the queue"
        if told is None:  # another process drives the search
            self.current = replace(current, process=None)
            return
        self._say(f"{current.row.name}: {told}")
        self.current = None

    def _settled(self, session: Session, current: Current, code: int | None, said: str) -> str | None:
        row = writes.claimed(session, current.row.id, current.row.claim)
        search = None if row.search_id is None else searches.locked(session, row.search_id)
        if search is not None and lease.alive(search):
            return None
        state = None if search is None else SearchState(search.state)
        reason = None if search is None else search.reason
        asked = self._has_asked(session, row) or current.asked is not None
        what, why = queue.after(queue.Run(state, reason, code, said, asked, row.held, row.failures))
        if what is queue.Next.END or what is queue.Next.FAIL:
            writes.finish(row, QueueState.ENDED if what is queue.Next.END else QueueState.FAILED, why)
            return why or f"has {state}"
        writes.withdraw(row)
        row.reason = why
        row.failures = row.failures + 1 if what is queue.Next.RETRY else 0
        if what is queue.Next.RETRY:
            row.not_before = queue.retry_at(time.time(), row.failures)
        if row.held and search is not None and state is not SearchState.PAUSED:
            requests.settle_undriven(session, search, self._wanted_by_others(session, search))
        row.held = row.held or what is queue.Next.HOLD
        return why or "waits for its turn"

    def _has_asked(self, session: Session, row: Queue) -> bool:
        """Whether anybody has asked for the pause: a runner, or a person, who holds the row while it is meant."""
        if row.search_id is None or row.started is None:
            return False
        newest = request_rows.newest(session, row.search_id, Ask.PAUSE)
        return newest is not None and newest.created >= row.started

    def _wanted_by_others(self, session: Session, search: Search) -> Wanted:
        """What a driver that died would have brought its search to."""
        asked = [Asked.of(row) for row in request_rows.open_ones(session, search.id)]
        wanted = fold([one for one in asked if one is not None])
        return wanted if wanted.state is not None else fold([Asked(Ask.PAUSE)])

    # -- its own lease ---------------------------------------------------------------------------------------

    def _beat(self) -> None:
        if time.monotonic() - self._last_beat < BEAT_SECONDS:
            return
        self._last_beat = time.monotonic()
        self.store.check_there()
        row = None if self.current is None else self.current.row.id
        self.store.write(lambda s: writes.beat(s, self._owner, row))

    def _remove_dead_runners(self, session: Session) -> None:
        gone = [row.id for row in queue_rows.runners(session) if not lease.alive(row)]
        writes.remove_runners(session, gone)
