"""Candidates as points: which group each belongs to, its figures, and its words. Pure data; nothing is drawn here."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboards.figures import palette
from dashboards.words import architecture, for_pages, interval, number
from search.front import FrontPoint
from search.store.read.rows import CandidateRow
from spaces.spec import ArchSpec
from workers.counting import counted


@dataclass(frozen=True)
class Point:
    """One candidate or baseline. key: an id that is safe in HTML. group: a key of `palette.GROUPS`.
    values, intervals: by quantity. epoch: epochs that its accuracy was scored after, of `epochs` in a full training.
    note: why it ended. module: as of `FrontPoint`."""

    key: str
    number: int
    label: str
    family: str
    architecture: str
    group: str
    state: str
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    epoch: int
    epochs: int
    note: str
    spec: ArchSpec
    module: str | None = None

    @property
    def trained_in_full(self) -> bool:
        return self.epoch >= self.epochs

    @property
    def training(self) -> str:
        """`12 of 12 epochs`; what an accuracy is worth depends on it."""
        return f"{self.epoch} of {counted(self.epochs, 'epoch')}" if self.epoch else "not trained"


def label(row: CandidateRow) -> str:
    """`#17`, or a baseline's name."""
    return (row.name or "baseline") if row.is_baseline else f"#{row.number}"


def make_point(found: FrontPoint, epochs: int) -> Point:
    """A candidate or baseline as a point. epochs: of a full training."""
    row = found.row
    return Point(
        key=f"b{-row.number}" if row.is_baseline else f"c{row.number}",
        number=row.number,
        label=label(row),
        family="" if row.is_baseline else row.family,
        architecture=architecture(row.family, row.point, row.spec.model),
        group=str(found.standing),
        state=str(row.state),
        values=found.values,
        intervals=found.intervals,
        epoch=row.epoch,
        epochs=epochs,
        note=row.reason or "",
        spec=row.spec,
        module=found.module,
    )


def hover(point: Point, quantities: Sequence[str]) -> str:
    """What the pointer shows: architecture, every figure with its interval, and how far it was trained.

    Plotly reads a small subset of HTML in it, so everything that comes from the database is escaped.
    """
    kind = [point.family, palette.GROUPS[point.group].label.lower()]
    head = f"<b>{_text(point.label[:44])}</b> · {_text(' · '.join(part for part in kind if part))}"
    lines = [head, *(_text(line) for line in _wrapped(point.architecture)), ""]
    for name in quantities:
        if name in point.values:
            bounds = interval(name, point.intervals.get(name))
            lines.append(
                _text(f"{name} {number(name, point.values[name])}" + (f" ({bounds})" if bounds else ""))
            )
    lines += ["", _text(point.training), *(_text(line) for line in _wrapped(point.note))]
    return "<br>".join(lines)


def _wrapped(value: str, width: int = 44) -> list[str]:
    return textwrap.wrap(value[:400], width)


def _text(value: str) -> str:
    return html.escape(for_pages(value), quote=False)  # plotly decodes no &quot;
