"""How a search ends, or rests, once nothing runs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.states import CandidateState, SearchState
from search.store.write import candidates, jobs, requests, results, searches

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from search.requests import Wanted
    from search.store.models import Search


def settle(session: Session, search: Search, wanted: Wanted, *, drains: bool, over: str | None) -> None:
    """Writes what became of a driven search with nothing left to run, and that all requests are settled.

    drains: whether its driver drained for a reason of its own. over: why there is no time or budget for more, which
    ends it whatever was asked for.
    """
    requests.settle(session, search.id)
    if over is not None:
        close(session, search, SearchState.FINISHED, over)
    elif wanted.state is SearchState.STOPPED:
        close(session, search, SearchState.STOPPED, wanted.reason)
    elif drains or wanted.state is not None:
        searches.set_state(search, SearchState.PAUSED, search.reason)
    else:
        close(session, search, SearchState.FINISHED, None)


def close(session: Session, search: Search, state: SearchState, reason: str | None) -> None:
    """Ends a search: what waits is cancelled and stopped. reason: None where all has been done."""
    why = reason or "earned no further rung"
    jobs.cancel_pending(session, search.id, why)
    for row in candidates.open_ones(session, search.id):
        candidates.set_state(row, CandidateState.STOPPED, why)
    searches.set_state(search, state, reason)
    results.add_event(session, search.id, "end", reason or "every candidate has ended")
