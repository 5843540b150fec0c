"""Following a search: what has happened since the last look, as plain lines, and whether anything more will."""

from __future__ import annotations

from dataclasses import dataclass

from search.states import ENDED_SEARCH, QueueState, SearchState
from search.store.read import queue
from search.store.read.events import events, last_events
from search.store.read.following import epochs_after, newest_epoch
from search.store.read.rows import QueueRow
from search.store.read.searches import search_by_name, searches
from search.store.reader import Reader

EXIT_CODES = {
    SearchState.FINISHED: 0,
    SearchState.STOPPED: 0,
    SearchState.FAILED: 1,
    SearchState.INTERRUPTED: 1,
    SearchState.PAUSED: 130,
}
"""Of `watch`, by the state in which nothing more happens."""


@dataclass(frozen=True)
class Seen:
    """How far one has looked. event, epoch: ids; None before the first look. state: in words, as it was told last."""

    event: int | None = None
    epoch: int | None = None
    state: str = ""


@dataclass(frozen=True)
class Look:
    """lines: what is new, in order, each with its time (UTC seconds), where it has one. code: the exit code, once
    nothing goes on by itself any more."""

    seen: Seen
    lines: tuple[tuple[float | None, str], ...]
    code: int | None = None


def look(reader: Reader, name: str, seen: Seen) -> Look:
    """What is new of a search, or of one that waits in the queue. Raises UserError for an unknown name."""
    row = queue.newest(reader, name)
    begun = any(search.name == name for search in searches(reader))
    if not begun and row is not None:
        return _queued(row, seen)
    search = search_by_name(reader, name)
    first = seen.event is None
    found = last_events(reader, search.id, 10) if first else events(reader, search.id, after=seen.event or 0)
    after = seen.epoch if seen.epoch is not None else newest_epoch(reader, search.id)
    epochs = epochs_after(reader, search.id, after)
    lines: list[tuple[float | None, str]] = [
        (event.time, f"#{event.candidate}: {event.text}" if event.candidate else event.text)
        for event in found
    ]
    lines += [(one.time, one.text) for one in epochs]
    lines.sort(key=lambda line: line[0] or 0.0)
    state = f"{search.state} ({search.reason})" if search.reason else str(search.state)
    if state != seen.state:
        lines.append((None, f"{name} is {state}"))
    now = Seen(
        event=max([event.id for event in found], default=seen.event or 0),
        epoch=max([one.id for one in epochs], default=after),
        state=state,
    )
    return Look(now, tuple(lines), None if _goes_on(search.state, row) else EXIT_CODES[search.state])


def _goes_on(state: SearchState, row: QueueRow | None) -> bool:
    """Whether more may come without anybody asking for it."""
    if state in ENDED_SEARCH:
        return False
    if state in (SearchState.PAUSED, SearchState.INTERRUPTED):
        return row is not None and (
            row.state is QueueState.RUNNING or (row.state is QueueState.WAITING and not row.held)
        )
    return True


def _queued(row: QueueRow, seen: Seen) -> Look:
    state = f"{row.state}, held back" if row.held else str(row.state)
    state = f"in the queue: {state}" + (f" ({row.reason})" if row.reason else "")
    lines = () if state == seen.state else ((None, f"{row.name} is {state}"),)
    ends = {QueueState.FAILED: 1, QueueState.ENDED: 0}.get(row.state)
    return Look(Seen(state=state), lines, 130 if row.held else ends)
