"""A whole search, read from the database once: one frozen object, so that all parts of a report or page agree."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dashboards.figures.curves import Score
from dashboards.figures.front import Axis
from dashboards.figures.points import Point, make_point
from search import rungs
from search.front import FrontView, front_view
from search.named_runtimes import asked
from search.objectives import QUANTITIES, Quantity
from search.objectives import quantity as quantity_of
from search.store.read import events, results
from search.store.read.drift import told
from search.store.read.rows import EventView, MeasurementView, SearchRow
from search.store.read.searches import search_by_name
from search.teacher import teacher_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from search.store.reader import Reader

MOST_EVENTS = 500


@dataclass(frozen=True)
class SearchData:
    """points: baselines first, then candidates by number. axes: every quantity by name. scores: by point key.
    measurements: those of the search's candidates, with the key of the point that each belongs to.
    written: when this was read, UTC seconds. teacher: as `search.teacher` gives it."""

    view: FrontView
    points: tuple[Point, ...]
    axes: Mapping[str, Axis]
    scores: Mapping[str, Sequence[Score]]
    rungs: tuple[int, ...]
    measurements: tuple[tuple[str, MeasurementView], ...]
    events: tuple[EventView, ...]
    busy_seconds: float
    written: float
    teacher: Mapping[str, Any] | None = None
    drift: str | None = None

    @property
    def search(self) -> SearchRow:
        return self.view.search

    @property
    def objectives(self) -> tuple[str, ...]:
        return tuple(quantity.name for quantity in self.view.objectives)


def load(session: Reader | Session, name: str) -> SearchData:
    """Raises UserError, naming the nearest one, when there is no search of that name."""
    from search.store.read.jobs import busy_seconds

    search = search_by_name(session, name)
    view = front_view(session, search)
    epochs = search.config["training"]["epochs"]
    found = [*view.baselines, *view.candidates]
    keys = {point.row.id: make_point(point, epochs).key for point in found}
    curves = results.curves(session, search.id)
    settings = search.config["search"]
    return SearchData(
        view=view,
        points=tuple(make_point(point, epochs) for point in found),
        axes=_axes(view),
        scores={
            keys[row]: [Score(e.epoch, e.accuracy, e.accuracy_low, e.accuracy_high) for e in epochs_of]
            for row, epochs_of in curves.items()
        },
        rungs=rungs.resolve(settings["rungs"], epochs, settings["sampler"]),
        measurements=tuple(
            (keys[m.candidate_id], m)
            for m in results.measurements_of_search(session, search.id)
            if m.candidate_id is not None
        ),
        events=tuple(events.last_events(session, search.id, MOST_EVENTS)),
        busy_seconds=busy_seconds(session, search.id),
        written=time.time(),
        teacher=teacher_of(session, search),
        drift=told(session, search.id),
    )


def _axes(view: FrontView) -> dict[str, Axis]:
    limits = {limit.name: limit.value for limit in view.limits}
    named = [quantity_of(name) for name in asked(view.search.config) if "@" in name]
    return {
        quantity.name: Axis(
            name=quantity.name,
            label=quantity_label(quantity),
            direction=quantity.direction,
            is_cost=quantity.kind == "cost",
            limit=limits.get(quantity.name),
        )
        for quantity in [*QUANTITIES.values(), *named]
    }


def quantity_label(quantity: Quantity) -> str:
    """`Latency, median (ms)`."""
    text = quantity.label[:1].upper() + quantity.label[1:]
    return f"{text} ({quantity.unit})" if quantity.unit else text


def limit_words(view: FrontView) -> list[str]:
    """The limits as sentences' parts: `latency_ms at most 1.2 (1.5x resnet)`."""
    written: Mapping[str, Any] = view.search.config["constraints"]
    words = []
    for limit in view.limits:
        bound = "at most" if quantity_of(limit.name).direction == "min" else "at least"
        relative = f" ({written[limit.name]})" if isinstance(written.get(limit.name), str) else ""
        words.append(f"{limit.name} {bound} {limit.value:.4g}{relative}")
    return words
