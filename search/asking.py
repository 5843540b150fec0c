"""Asking something of a search where nobody stands by to drive it: what goes on, goes on in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search import queue, requests
from search.requests import Ask, Asked, NothingToDo
from search.states import SearchState
from search.store.read.searches import search_by_name
from search.store.write import queue as writes
from search.store.write import searches
from workers import plugins

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def ask_or_queue(session: Session, name: str, asked: Asked) -> str:
    """As `requests.ask`, and puts a search that is to be resumed and has no driver into the queue."""
    told = requests.ask(session, name, asked)
    if told is not None:
        return told
    assert asked.kind is Ask.RESUME
    row = searches.locked(session, search_by_name(session, name).id)
    if row.state in (SearchState.FINISHED, SearchState.FAILED):
        raise NothingToDo(f"search {name!r} is {row.state}; `paretovit resume` extends it, with --set")
    writes.add_search(session, row, plugins.allowed(), queue.USUAL)
    return f"search {name!r} is in the queue; a runner goes on with it"
