"""Which queued search is next, whether the running one has to make room, and what a run's end means. Pure.

For those who plan a night: `may_run_until` is when a row's window shuts, which bounds a search beside its own deadline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import tzinfo
from enum import Enum

from search import windows
from search.states import ENDED_SEARCH, QueueState, SearchState
from search.store.read.rows import QueueRow

LEAST, MOST, USUAL = 0, 9, 5
"""Priorities; the higher goes first."""

MOST_FAILURES = 3
_RETRY_SECONDS = 30.0


def choose(
    rows: Iterable[QueueRow], now: float, modules: Collection[str], zone: tzinfo | None = None
) -> QueueRow | None:
    """The row to run next: the highest priority, of equals the one whose window shuts first, of those the oldest.

    now: UTC seconds. modules: those that this runner was allowed.
    """
    ready = [row for row in rows if is_ready(row, now, modules, zone)]

    def order(row: QueueRow) -> tuple[float, float, int]:
        shuts = may_run_until(row, now, zone)
        return (-row.priority, float("inf") if shuts is None else shuts, row.id)

    return min(ready, key=order, default=None)


def is_ready(row: QueueRow, now: float, modules: Collection[str], zone: tzinfo | None = None) -> bool:
    """Whether a row may be run now."""
    return (
        row.state is QueueState.WAITING
        and not row.held
        and (row.not_before is None or row.not_before <= now)
        and not lacking(row, modules)
        and is_open(row, now, zone)
    )


def lacking(row: QueueRow, modules: Collection[str]) -> list[str]:
    """Modules that a row was submitted with, and that this runner was not allowed: a database allows nothing."""
    return [module for module in row.modules if module not in modules]


def is_open(row: QueueRow, now: float, zone: tzinfo | None = None) -> bool:
    return row.window is None or windows.parse(row.window).closes(now, zone) is not None


def may_run_until(row: QueueRow, now: float, zone: tzinfo | None = None) -> float | None:
    """When the window of a row that runs shuts, UTC seconds; None without one."""
    return None if row.window is None else windows.parse(row.window).closes(now, zone)


def why_pause(
    running: QueueRow,
    rows: Iterable[QueueRow],
    now: float,
    modules: Collection[str],
    zone: tzinfo | None = None,
) -> str | None:
    """Why the running search has to leave the machine, in words; None to let it run."""
    if not is_open(running, now, zone):
        return f"its window {running.window} has shut"
    first = choose(rows, now, modules, zone)
    if first is not None and first.priority > running.priority:
        return f"makes room for {first.name} of priority {first.priority}"
    return None


class Next(Enum):
    """What becomes of a row whose run has ended."""

    END = "end"
    WAIT = "wait"  # to go on as soon as it may
    RETRY = "retry"  # later
    HOLD = "hold"  # until somebody asks for it
    FAIL = "fail"  # it never began


@dataclass(frozen=True)
class Run:
    """How a run has ended. state: the search's as stored; None where it never began. code: of its process, 1 and 2
    where it refused; None where nobody saw that. said: what it wrote as it refused. asked: somebody had asked for a
    pause. failures: before this one."""

    state: SearchState | None
    reason: str | None
    code: int | None
    said: str
    asked: bool
    held: bool
    failures: int


def after(run: Run) -> tuple[Next, str | None]:
    """What becomes of the row, and why in words where that is to be told."""
    refused = run.code in (1, 2)
    if run.state is None:
        if refused:
            return Next.FAIL, run.said or "it could not begin"
        return (Next.WAIT, None) if run.asked else _again(run)
    if run.state in ENDED_SEARCH:
        return Next.END, run.reason
    if run.held:
        return Next.HOLD, run.reason
    if refused:
        return Next.HOLD, run.said
    if run.asked:
        return Next.WAIT, run.reason
    return (Next.HOLD, run.reason) if run.state is SearchState.PAUSED else _again(run)


def _again(run: Run) -> tuple[Next, str | None]:
    if run.code is None:
        return Next.WAIT, None
    times = run.failures + 1
    if times < MOST_FAILURES:
        return Next.RETRY, f"its process died ({times} of {MOST_FAILURES} times in a row); it is tried again"
    return Next.HOLD, f"its process died {times} times in a row; mend that, then resume it"


def retry_at(now: float, failures: int) -> float:
    """When to try again after so many failures in a row."""
    return now + _RETRY_SECONDS * 2 ** (failures - 1)
