"""Writes to candidates."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from search.states import TERMINAL_CANDIDATE, CandidateState, SearchState
from search.store.models import Candidate, Search
from spaces.spec import ArchSpec

TEACHER = 0
"""The number of the network that the others learn from, in searches that have one."""


def add(
    session: Session,
    search_id: int,
    number: int,
    family: str,
    spec: ArchSpec,
    *,
    point: Mapping[str, Any],
    analysis: Mapping[str, float],
    trial: int | None = None,
    name: str | None = None,
) -> Candidate:
    """Adds a proposed candidate, a baseline where `number` is negative, or the teacher, and returns its row."""
    row = Candidate(
        search_id=search_id,
        number=number,
        role="candidate" if number > 0 else "teacher" if number == TEACHER else "baseline",
        name=name,
        family=family,
        point=dict(point),
        spec=spec.to_dict(),
        digest=spec.digest,
        analysis=dict(analysis),
        state=CandidateState.PROPOSED,
        measured=dict(analysis),
        intervals={},
        by_rung={},
        trial=trial,
        created=time.time(),
    )
    session.add(row)
    session.flush()
    return row


def by_number(session: Session, search_id: int, number: int) -> Candidate:
    return session.scalars(
        select(Candidate).where(Candidate.search_id == search_id, Candidate.number == number)
    ).one()


def all_of(session: Session, search_id: int) -> list[Candidate]:
    """Every candidate and baseline of a search, and its teacher, by number."""
    return list(
        session.scalars(select(Candidate).where(Candidate.search_id == search_id).order_by(Candidate.number))
    )


def baselines(session: Session, search_id: int) -> list[Candidate]:
    return [row for row in all_of(session, search_id) if row.number < 0]


def teacher(session: Session, search_id: int) -> Candidate | None:
    return next((row for row in all_of(session, search_id) if row.number == TEACHER), None)


def open_ones(session: Session, search_id: int) -> list[Candidate]:
    """Candidates and baselines that have not ended."""
    return [row for row in all_of(session, search_id) if CandidateState(row.state) not in TERMINAL_CANDIDATE]


def untold(session: Session, search_id: int) -> list[Candidate]:
    """Candidates that have ended without Optuna having been told."""
    return list(
        session.scalars(
            select(Candidate)
            .where(
                Candidate.search_id == search_id,
                Candidate.told.is_(False),
                Candidate.trial.is_not(None),
                Candidate.state.in_([str(state) for state in TERMINAL_CANDIDATE]),
            )
            .order_by(Candidate.number)
        )
    )


def mark_told(session: Session, search_id: int, number: int) -> None:
    by_number(session, search_id, number).told = True


def trials(session: Session, search_id: int) -> set[int]:
    """Optuna's trial numbers that candidates stand for."""
    found = session.scalars(select(Candidate.trial).where(Candidate.search_id == search_id))
    return {trial for trial in found if trial is not None}


def spec_of(row: Candidate) -> ArchSpec:
    return ArchSpec.from_dict(row.spec)


def set_state(row: Candidate, state: CandidateState, reason: str | None = None) -> None:
    """Changes a candidate's state. A terminal one never changes again: AssertionError."""
    assert CandidateState(row.state) not in TERMINAL_CANDIDATE, f"candidate {row.number} has ended"
    row.state = state
    row.reason = reason
    row.ended = time.time() if state in TERMINAL_CANDIDATE else None


def to_take_up(session: Session, search: Search) -> list[Candidate]:
    """What was stopped in a search that had ended and is queued again; of other searches nothing."""
    if search.state != SearchState.QUEUED:
        return []
    return [row for row in all_of(session, search.id) if row.state == CandidateState.STOPPED]


def reopen(row: Candidate, state: CandidateState, trial: int | None) -> None:
    """Takes up again, under a new Optuna trial, a stopped candidate, or one rejected by a figure that was wrong; or the
    teacher, whose checkpoint was lost."""
    assert row.state in (CandidateState.STOPPED, CandidateState.REJECTED) or row.number == TEACHER, (
        f"candidate {row.number} is {row.state}"
    )
    row.state, row.reason, row.ended = state, None, None
    row.trial, row.told = trial, False


def learn(row: Candidate, values: Mapping[str, float], intervals: Mapping[str, tuple[float, float]]) -> None:
    """Adds to what is known of a candidate. JSON columns change by assignment only."""
    row.measured = dict(row.measured) | dict(values)
    row.intervals = dict(row.intervals) | {name: list(interval) for name, interval in intervals.items()}
