"""Writes to a search: its creation, its state, and the lease under which everything else is written."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from search import hints, lease
from search.errors import UserError
from search.states import ENDED_SEARCH, SearchState
from search.store.models import Search


class LeaseLost(UserError):
    """Another driver has taken the search over; this one may not write any more."""


class NameTaken(UserError):
    """The database holds a search of that name."""

    def __init__(self, name: str, runs: bool = False) -> None:
        """runs: somebody drives it now."""
        stands, command = ("is running", "watch") if runs else ("is in the database already", "resume")
        how = "look at it" if runs else "go on with it"
        super().__init__(
            f"name: a search {name!r} {stands}; {how} by `{hints.command(command, name)}`, or choose another name"
        )


def create(
    session: Session,
    name: str,
    config: dict[str, Any],
    data: dict[str, Any],
    artifacts: str,
    deadline: float | None,
) -> int:
    """Adds a search in state `queued` and returns its id. Raises UserError when the name is taken."""
    if session.scalar(select(Search.id).where(Search.name == name)) is not None:
        raise NameTaken(name)
    row = Search(
        name=name,
        state=SearchState.QUEUED,
        config=config,
        created=time.time(),
        deadline=deadline,
        data=data,
        artifacts=artifacts,
    )
    session.add(row)
    session.flush()
    return row.id


def reconfigure(session: Session, search_id: int, config: dict[str, Any], deadline: float | None) -> None:
    """Replaces the config of a search whose lease was taken in this transaction. One that had ended is queued again."""
    row = locked(session, search_id)
    row.config, row.deadline = config, deadline
    if SearchState(row.state) in ENDED_SEARCH:
        row.state, row.reason, row.ended = SearchState.QUEUED, None, None


def take(session: Session, search_id: int, owner: lease.Owner, silent_beat: int | None = None) -> int:
    """Makes `owner` the driver and returns the new lease number. Raises UserError when a driver is alive.

    silent_beat: the counter that a driver on another host was seen not to move for a whole TTL.
    """
    row = locked(session, search_id)
    mine = (row.owner_host, row.owner_pid, row.owner_boot) == (owner.host, owner.pid, owner.boot)
    is_silent = row.beat == silent_beat and not lease.is_here(row)
    if not (mine or is_silent) and (lease.alive(row) or (row.owner_host and not lease.is_here(row))):
        raise UserError(
            f"search {row.name!r} is driven by process {row.owner_pid} on {row.owner_host}; "
            f"wait for it, or end that process first"
        )
    row.lease += 1
    row.give(owner)
    return row.lease


def release(session: Session, search_id: int, lease_number: int) -> None:
    """Gives the search back, if it is still ours."""
    session.execute(
        update(Search)
        .where(Search.id == search_id, Search.lease == lease_number)
        .values(owner_host=None, owner_boot=None, owner_pid=None, owner_started=None)
    )


def fence(session: Session, search_id: int, lease_number: int) -> Search:
    """The search's row, locked for this transaction. Raises LeaseLost when the lease is no longer ours.

    Every write of a driver starts with it, so that a driver that was taken over changes nothing.
    """
    row = locked(session, search_id)
    if row.lease != lease_number:
        raise LeaseLost(f"search {row.name!r} was taken over by process {row.owner_pid} on {row.owner_host}")
    return row


def set_state(row: Search, state: SearchState, reason: str | None = None) -> None:
    """Changes the state of a fenced search, with the times that belong to it."""
    row.state = state
    row.reason = reason
    if state == SearchState.RUNNING and row.started is None:
        row.started = time.time()
    row.ended = time.time() if state in ENDED_SEARCH else None


def locked(session: Session, search_id: int) -> Search:
    """The search's row, which no other transaction changes before this one has ended."""
    return session.scalars(select(Search).where(Search.id == search_id).with_for_update()).one()


def owned(session: Session) -> list[Search]:
    """Those that a driver has not given back; `search.lease.alive` tells whether it lives."""
    return list(session.scalars(select(Search).where(Search.owner_host.is_not(None)).order_by(Search.id)))
