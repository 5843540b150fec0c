"""One search in the list of all: how it stands, and the best that it has found. No text here depends on the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboards import summary, words
from dashboards.figures.points import label
from dashboards.summary import Figure, Progress
from search.front import FrontPoint, FrontView, front_view
from search.objectives import QUANTITIES, Quantity
from search.states import ENDED_SEARCH
from search.store.read.rows import SearchRow
from search.store.read.status import candidate_counts

if TYPE_CHECKING:
    from search.store.reader import Reader


@dataclass(frozen=True)
class Entry:
    """state: `interrupted` when its driver is gone. notice: what to do about that. reason: why it ended, where told."""

    name: str
    state: str
    objectives: str
    notice: str
    reason: str
    progress: Progress
    figures: tuple[Figure, ...]


def entry(reader: Reader, search: SearchRow) -> Entry:
    view = front_view(reader, search)
    return Entry(
        name=search.name,
        state=str(search.state),
        objectives=summary.objectives([quantity.name for quantity in view.objectives]),
        notice=summary.notice(search),
        reason=search.reason or "",
        progress=summary.progress(search, candidate_counts(reader, search.id), search.beat_time or 0.0),
        figures=tuple(_figures(view)),
    )


def _figures(view: FrontView) -> list[Figure]:
    search = view.search
    begun = search.started or search.created
    found = [
        Figure("Started" if search.started else "Queued", words.moment(begun), moment=begun),
        _best(view),
        Figure("On the front", str(len(view.front)), f"of {len(view.candidates)} candidates"),
    ]
    if search.deadline is not None:
        found.append(Figure("Deadline", words.moment(search.deadline), moment=search.deadline))
    if search.ended is not None and search.started is not None:
        found.append(Figure("Took", words.duration(search.ended - search.started)))
    return found


def best(front: Sequence[FrontPoint], objectives: Sequence[Quantity]) -> FrontPoint | None:
    """The point of the front with the best accuracy; without accuracies, with the best first objective."""
    names = [quantity.name for quantity in objectives]
    by = QUANTITIES["accuracy"] if "accuracy" in names else objectives[0]
    scored = [point for point in front if by.name in point.values]
    sign = 1 if by.maximise else -1
    return max(scored, key=lambda point: sign * point.values[by.name], default=None)


def _best(view: FrontView) -> Figure:
    found = best(view.front, view.objectives)
    names = [quantity.name for quantity in view.objectives]
    first = "accuracy" if "accuracy" in names else names[0]
    if found is None:
        ended = view.search.state in ENDED_SEARCH
        return Figure(
            f"Best {first}", "–", "none within the limits" if ended else "none within the limits yet"
        )
    cost = next((q for q in view.objectives if q.kind == "cost" and q.name != first), None)
    at = f" at {words.number(cost.name, found.values[cost.name])} {cost.unit}".rstrip() if cost else ""
    named = f", {cost.label}" if cost else ""
    return Figure(f"Best {first}", words.number(first, found.values[first]), f"{label(found.row)}{at}{named}")
