"""What the training of a candidate or baseline began from and learnt from, as it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from search import teacher
from search.store.read import events
from search.store.read.rows import CandidateRow, SearchRow

if TYPE_CHECKING:
    from search.store.reader import Reader


@dataclass(frozen=True)
class Began:
    """weights: a line on the pretrained weights that its training began from, whole or in parts; None for fresh ones,
    and before it began. teacher: a line on whom it learns from; None for labels alone."""

    weights: str | None = None
    teacher: str | None = None


def of_candidate(reader: Reader, search: SearchRow, row: CandidateRow) -> Began:
    found = teacher.of_candidate(reader, search, row)
    weights = events.newest(reader, search.id, "weights", row.number)
    return Began(
        None if weights is None else weights.text.removeprefix("began from "),
        None if found is None else teacher.words(found),
    )
