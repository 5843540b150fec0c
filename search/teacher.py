"""The network that a search's candidates learn from, as the command line, the pages and the report show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from search import chance
from search.states import CandidateState
from search.store.read import candidates
from search.store.read.rows import CandidateRow, SearchRow
from spaces.deit import has_token
from workers.counting import interval

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from search.store.reader import Reader

WORD = "teacher"
"""What `show` takes for it."""

_LEARNT = {
    "soft": "candidates learn its probabilities",
    "hard": "candidates learn the classes that it names",
    "token": "distillation tokens learn the classes that it names",
}


def teacher_of(session: Reader | Session, search: SearchRow) -> dict[str, Any] | None:
    """Name, state, and accuracy on the validation split with its 95% interval, None before it has one; None for a
    search without a teacher."""
    row = candidates.teacher(session, search.id)
    return None if row is None else known(search, row)


def of_candidate(session: Reader | Session, search: SearchRow, row: CandidateRow) -> dict[str, Any] | None:
    """The same for what learns from it; None for a candidate or baseline that does not."""
    found = teacher_of(session, search)
    return None if found is None or (found["kind"] == "token" and not has_token(row.spec.model)) else found


def known(search: SearchRow, row: CandidateRow) -> dict[str, Any]:
    """What `teacher_of` gives, of its row."""
    bounds = row.intervals.get("accuracy")
    return {
        "name": row.name,
        "state": str(row.state),
        "reason": row.reason,
        "kind": search.config["training"]["distillation"]["kind"],
        "accuracy": row.measured.get("accuracy"),
        "interval": None if bounds is None else list(bounds),
        "chance": chance.remark(None if bounds is None else bounds[0], search.data),
    }


def words(found: Mapping[str, Any]) -> str:
    """`resnet, accuracy 0.912 (0.900–0.924); candidates learn its probabilities`."""
    text = str(found["name"])
    if found["state"] != CandidateState.FINISHED:
        text += f", {found['state']}"
    if found["accuracy"] is not None:
        low, high = found["interval"]
        text += f", accuracy {found['accuracy']:.3f} ({interval(low, high, '.3f')})"
        text += f", {found['chance']}" if found["chance"] else ""
    return f"{text}; {_LEARNT[found['kind']]}"
