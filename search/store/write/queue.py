"""Writes to the queue: submitting, asking for what has not begun, and a runner's claims, each in one transaction."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from search.lease import Owner
from search.states import ACTIVE_QUEUE, QueueState
from search.store.models import Queue, Runner, Search
from search.store.write.searches import NameTaken


class Withdrawn(Exception):
    """The row of the queue that a process was started for is no longer what it was started for."""


def add(
    session: Session,
    name: str,
    config: dict[str, Any],
    plugins: Collection[str],
    priority: int,
    window: str | None,
) -> int:
    """Queues a search that has not begun and returns its row's id. Raises NameTaken."""
    if session.scalar(select(Search.id).where(Search.name == name)) is not None or active(session, name):
        raise NameTaken(name)
    return _add(session, name, None, config, plugins, priority, window)


def add_search(session: Session, search: Search, plugins: Collection[str], priority: int) -> None:
    """Queues a search that has begun and that nobody drives, unless it is there already; then nothing holds it.

    priority: of one that was never in the queue; any other keeps what it had, its window too.
    """
    if release_hold(session, search.id):
        return
    last = session.scalars(
        select(Queue).where(Queue.search_id == search.id).order_by(Queue.id.desc())
    ).first()
    kept = (priority, None) if last is None else (last.priority, last.window)
    _add(session, search.name, search.id, {}, plugins, *kept)


def active(session: Session, name: str) -> Queue | None:
    """The row of that name that waits or runs, locked."""
    query = select(Queue).where(Queue.name == name, Queue.state.in_(ACTIVE_QUEUE)).with_for_update()
    return session.scalars(query.order_by(Queue.id.desc())).first()


def ask_waiting(session: Session, name: str, kind: str) -> bool:
    """Pauses, resumes or stops a row whose search has not begun. False where there is none."""
    row = active(session, name)
    if row is None and kind == "resume":
        row = _failed(session, name)
    if row is None or row.search_id is not None:
        return False
    if kind == "stop":
        finish(row, QueueState.ENDED, "stopped before it began")
    elif kind == "pause":
        withdraw(row)
        row.held = True
    else:
        _release(row)
    return True


def hold(session: Session, search_id: int, *, running: bool) -> None:
    """Keeps a begun search from being run again. running: by a driver, which hears of it otherwise."""
    row = _of_search(session, search_id)
    if row is None:
        return
    if not running:
        withdraw(row)
    row.held = True


def release_hold(session: Session, search_id: int) -> bool:
    """Lets a begun search be run again. False where it is not in the queue."""
    row = _of_search(session, search_id)
    if row is not None:
        _release(row)
    return row is not None


def end(session: Session, search_id: int, reason: str) -> None:
    """Takes a begun search out of the queue."""
    row = _of_search(session, search_id)
    if row is not None:
        finish(row, QueueState.ENDED, reason)


def forget(session: Session, name: str) -> int:
    """Deletes the rows of a name whose searches have not begun; returns how many."""
    rows = session.scalars(select(Queue).where(Queue.name == name, Queue.search_id.is_(None))).all()
    for row in rows:
        session.delete(row)
    return len(rows)


# -- a runner's ---------------------------------------------------------------------------------------------


def lock_active(session: Session) -> list[Queue]:
    """All rows that wait or run, kept from other runners until this transaction ends."""
    query = select(Queue).where(Queue.state.in_(ACTIVE_QUEUE)).order_by(Queue.id).with_for_update()
    return list(session.scalars(query))


def claim(row: Queue, owner: Owner) -> int:
    """Gives a locked row to a runner and returns the number of the claim."""
    row.claim += 1
    row.state, row.started, row.reason, row.not_before = QueueState.RUNNING, time.time(), None, None
    row.give(owner)
    return row.claim


def claimed(session: Session, row_id: int, number: int) -> Queue:
    """The row under that claim, locked. Raises Withdrawn when it is no longer claimed so."""
    query = select(Queue).where(Queue.id == row_id, Queue.claim == number, Queue.state == QueueState.RUNNING)
    row = session.scalars(query.with_for_update()).one_or_none()
    if row is None:
        raise Withdrawn
    return row


def withdraw(row: Queue) -> None:
    """Lets a row wait again. What was started for it finds its claim gone."""
    if row.state == QueueState.RUNNING:
        row.state = QueueState.WAITING
        row.claim += 1
    row.take_away()
    row.beat_time = None


def finish(row: Queue, state: QueueState, reason: str | None) -> None:
    """Ends a row."""
    withdraw(row)
    row.state, row.reason, row.ended, row.held = state, reason, time.time(), False


def beat(session: Session, owner: Owner, row_id: int | None) -> None:
    """Moves a runner's counters: its own, and that of the row that it works at."""
    now = time.time()
    runner = _runner(session, owner)
    if runner is None:
        values = {"owner_host": owner.host, "owner_boot": owner.boot, "owner_pid": owner.pid}
        runner = Runner(**values, owner_started=owner.started, beat=0)
        session.add(runner)
    runner.beat, runner.beat_time = runner.beat + 1, now
    row = session.get(Queue, row_id) if row_id is not None else None
    if row is not None and (row.owner_host, row.owner_pid) == (owner.host, owner.pid):
        row.beat, row.beat_time = row.beat + 1, now


def remove_runners(session: Session, ids: Collection[int]) -> None:
    session.execute(delete(Runner).where(Runner.id.in_(ids)))


def leave(session: Session, owner: Owner) -> None:
    """Takes a runner's row away."""
    runner = _runner(session, owner)
    if runner is not None:
        session.delete(runner)


def _add(
    session: Session,
    name: str,
    search_id: int | None,
    config: dict[str, Any],
    plugins: Collection[str],
    priority: int,
    window: str | None,
) -> int:
    row = Queue(
        name=name,
        search_id=search_id,
        config=config,
        plugins={"modules": list(plugins)},
        priority=priority,
        window=window,
        state=QueueState.WAITING,
        created=time.time(),
    )
    session.add(row)
    session.flush()
    return row.id


def _of_search(session: Session, search_id: int) -> Queue | None:
    query = select(Queue).where(Queue.search_id == search_id, Queue.state.in_(ACTIVE_QUEUE)).with_for_update()
    return session.scalars(query.order_by(Queue.id.desc())).first()


def _failed(session: Session, name: str) -> Queue | None:
    """The last row of a name, if that failed before its search began."""
    row = session.scalars(select(Queue).where(Queue.name == name).order_by(Queue.id.desc())).first()
    return row if row is not None and row.state == QueueState.FAILED else None


def _release(row: Queue) -> None:
    if row.state == QueueState.FAILED:
        row.state, row.ended = QueueState.WAITING, None
    row.held, row.not_before, row.failures = False, None, 0
    if row.state == QueueState.WAITING:
        row.reason = None


def _runner(session: Session, owner: Owner) -> Runner | None:
    query = select(Runner).where(
        Runner.owner_host == owner.host, Runner.owner_boot == owner.boot, Runner.owner_pid == owner.pid
    )
    return session.scalars(query).first()
