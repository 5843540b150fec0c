"""What people and the runner ask of a search: rows that anyone may append and that its driver acts on.

A pause ends trainings with their epoch; a stop lets running jobs end, and a stop that is urgent ends them like a
pause. A request stays open until the driver has settled it, so that of a driver that dies meanwhile it is known what it
was told. Where no driver can be alive, `ask` settles it at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from search import lease
from search.errors import UserError
from search.states import ENDED_SEARCH, SearchState

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from search.store.models import Request, Search

PERSON = "person"
RUNNER = "runner"
_DRIVEN = (SearchState.QUEUED, SearchState.RUNNING, SearchState.DRAINING)
_REASONS = {SearchState.PAUSED: "paused on request", SearchState.STOPPED: "stopped on request"}


class NothingToDo(UserError):
    """The search is in a state in which what was asked for has no meaning."""


class Ask(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    NOTE = "note"


@dataclass(frozen=True)
class Asked:
    """One request. now: trainings end with their epoch. text: why, or a note. by: PERSON or RUNNER."""

    kind: Ask
    now: bool = False
    text: str = ""
    by: str = PERSON

    def payload(self) -> dict[str, Any]:
        return {"now": self.now, "text": self.text, "by": self.by}

    @classmethod
    def of(cls, row: Request) -> Asked | None:
        """None for a request that this version knows nothing of."""
        if row.kind not in set(Ask):
            return None
        by = RUNNER if row.payload.get("by") == RUNNER else PERSON
        return cls(Ask(row.kind), bool(row.payload.get("now")), str(row.payload.get("text") or ""), by)


@dataclass(frozen=True)
class Wanted:
    """What requests come to. state: PAUSED or STOPPED, to be reached by draining; None to go on. now: trainings end
    with their epoch. reason: in words."""

    state: SearchState | None = None
    now: bool = False
    reason: str = ""


GO_ON = Wanted()


def fold(requests: Iterable[Asked]) -> Wanted:
    """The last one counts; but a pause does not undo a stop, and a second stop may only hasten the first. Pure."""
    wanted = GO_ON
    for asked in requests:
        if asked.kind is Ask.RESUME:
            wanted = GO_ON
        elif asked.kind is Ask.STOP:
            hastened = asked.now or (wanted.state is SearchState.STOPPED and wanted.now)
            wanted = _towards(SearchState.STOPPED, hastened, asked.text)
        elif asked.kind is Ask.PAUSE and wanted.state is not SearchState.STOPPED:
            wanted = _towards(SearchState.PAUSED, True, asked.text)
    return wanted


def _towards(state: SearchState, now: bool, text: str) -> Wanted:
    return Wanted(state, now, f"{_REASONS[state]}: {text}" if text else _REASONS[state])


def heed(session: Session, search: Search, *, drains: bool) -> Wanted:
    """The driver's look at what is asked of its search, in one of its transactions: notes become events, the state
    follows. drains: whether it drains for a reason of its own, which no request undoes."""
    from search.store.write import requests, results, searches

    found = []
    for row in requests.open_ones(session, search.id):
        asked = Asked.of(row)
        if asked is not None and asked.kind is not Ask.NOTE:
            found.append(asked)
            continue
        text = f"a request {row.kind!r} is not known here" if asked is None else asked.text
        results.add_event(session, search.id, "note", text)
        row.done = search.beat_time
    wanted = fold(found)
    if wanted.state is None:
        requests.settle(session, search.id)
        if search.state == SearchState.DRAINING and not drains:
            searches.set_state(search, SearchState.RUNNING)
            results.add_event(session, search.id, "request", "goes on, on request")
    elif search.reason != wanted.reason and not drains:
        searches.set_state(search, SearchState.DRAINING, wanted.reason)
        results.add_event(session, search.id, "request", wanted.reason)
    return wanted


def ask(session: Session, name: str, asked: Asked) -> str | None:
    """Asks something of a search by name, in one transaction, and says what becomes of it in a line.

    A driver that may be alive gets a request. Where none can be, a pause or a stop is settled here: what ran is lost,
    the state is written, and a driver of before can write nothing any more. None for a `resume` that no driver can
    take: somebody has to drive the search. Raises UserError for an unknown name, NothingToDo for a search that has
    ended.
    """
    from search.store.read.searches import search_by_name
    from search.store.write import queue, requests, results, searches

    if asked.kind is not Ask.NOTE and queue.ask_waiting(session, name, asked.kind):
        return {
            Ask.PAUSE: f"search {name!r} has not begun; it is held back until somebody resumes it",
            Ask.STOP: f"search {name!r} had not begun; it is out of the queue",
            Ask.RESUME: f"search {name!r} waits in the queue for its turn",
        }[asked.kind]
    row = searches.locked(session, search_by_name(session, name).id)
    state, has_driver = SearchState(row.state), _may_have_driver(row)
    if state in ENDED_SEARCH and asked.kind in (Ask.PAUSE, Ask.STOP):
        raise NothingToDo(f"search {name!r} is {state}; there is nothing to {asked.kind}")
    if asked.by == PERSON and asked.kind in (Ask.PAUSE, Ask.STOP):
        queue.hold(session, row.id, running=has_driver)
    if asked.kind is Ask.RESUME:
        queue.release_hold(session, row.id)
    if has_driver:
        requests.add(session, row.id, asked.kind, asked.payload())
        return _told(row, asked)
    if asked.kind is Ask.NOTE:
        results.add_event(session, row.id, "note", asked.text)
        return f"noted at search {name!r}"
    if asked.kind is Ask.RESUME:
        return None
    settle_undriven(session, row, fold([asked]))
    return f"search {name!r} is {row.state}"


def settle_undriven(session: Session, search: Search, wanted: Wanted) -> None:
    """Brings a search that nobody drives to the state that was asked for. search: locked.

    What is stopped here is told to Optuna by a driver that takes the search up again, if one ever does.
    """
    from search import ending
    from search.store.write import jobs, queue

    search.lease += 1
    search.take_away()
    jobs.lose_running(session, search.id, "its driver ended")
    search.reason = wanted.reason
    ending.settle(session, search, wanted, drains=False, over=None)
    if wanted.state is SearchState.STOPPED:
        queue.end(session, search.id, wanted.reason)


def _may_have_driver(row: Search) -> bool:
    """Whether a request would be heard. Of another host only the silence of its driver is known, which proves nothing;
    one whose search rests or has ended has only itself to end."""
    if row.owner_host is None or SearchState(row.state) not in _DRIVEN:
        return False
    return lease.alive(row) or not lease.is_here(row)


def _told(row: Search, asked: Asked) -> str:
    """What the driver will do, for the one who asked."""
    if asked.kind is Ask.NOTE:
        return f"noted at search {row.name!r}"
    if not lease.alive(row):
        return (
            f"search {row.name!r} is driven from {row.owner_host}, which has been silent for a while; "
            "the request waits for that driver, and the next one goes on without it"
        )
    trainings = "trainings end with their epoch and go on from there"
    what = {
        Ask.PAUSE: f"pauses; {trainings}",
        Ask.STOP: f"stops; {'trainings end with their epoch' if asked.now else 'what runs is brought to its end'}",
        Ask.RESUME: "goes on",
    }[asked.kind]
    return f"search {row.name!r} {what}"
