"""The table of candidates: the same figures as in the chart, as columns and rows of text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboards import words
from dashboards.figures import palette
from dashboards.figures.front import FrontInfo
from dashboards.figures.palette import Group
from dashboards.figures.points import Point


@dataclass(frozen=True)
class Column:
    """kind: how it sorts, `number` or `text`. look: a class. first: the order that its first press gives.
    order: how the table is sorted by it at first, if it is."""

    label: str
    kind: str
    look: str = ""
    first: str = "ascending"
    order: str = ""


@dataclass(frozen=True)
class Cell:
    """One figure. sort: the exact value; empty without one. remark: what it is worth, where that is not the usual."""

    name: str
    text: str
    sort: str
    interval: str
    remark: str


@dataclass(frozen=True)
class Row:
    """One candidate or baseline. href: of its own page; empty in a file that has no other pages."""

    key: str
    number: int
    label: str
    href: str
    group: Group
    place: int
    family: str
    objectives: tuple[Cell, ...]
    architecture: str
    rebuild: str
    note: str
    others: tuple[Cell, ...]
    epoch: int


@dataclass(frozen=True)
class LegendEntry:
    group: Group
    count: int


# From what matters most to what matters least: the other way round than they are drawn.
ORDER = tuple(reversed(palette.GROUPS))


def columns(front: FrontInfo) -> list[Column]:
    """Headings, in the order of a row's cells: the objectives before the architecture, other quantities behind."""
    quantities = {
        name: Column(axis.label, "number", "number", "descending" if axis.direction == "max" else "ascending")
        for name, axis in front.axes.items()
    }
    return [
        Column("No.", "number"),
        Column("Kind", "number", order="ascending"),
        Column("Family", "text"),
        *(quantities[name] for name in front.objectives),
        Column("Architecture", "text"),
        *(column for name, column in quantities.items() if name not in front.objectives),
        Column("Epochs", "number", "number", "descending"),
    ]


def no_page(_: Point) -> str:
    """The address of a point in a file that has no other pages."""
    return ""


def rows(front: FrontInfo, href: Callable[[Point], str] = no_page) -> list[Row]:
    """The front first, by its first axis; then the other groups as in the legend."""
    ordered = sorted(
        front.points,
        key=lambda point: (
            ORDER.index(point.group),
            point.values.get(front.x, float("inf")),
            point.number,
        ),
    )
    return [_row(point, front, href(point)) for point in ordered]


def legend(points: Sequence[Point]) -> list[LegendEntry]:
    """Every group with the number of its points, 0 included."""
    counts = Counter(point.group for point in points)
    return [LegendEntry(palette.GROUPS[key], counts[key]) for key in ORDER]


def _row(point: Point, front: FrontInfo, href: str) -> Row:
    return Row(
        key=point.key,
        number=point.number,
        label=point.label,
        href=href,
        group=palette.GROUPS[point.group],
        place=ORDER.index(point.group),
        family=point.family,
        objectives=tuple(cell(point, name) for name in front.objectives),
        others=tuple(cell(point, name) for name in front.axes if name not in front.objectives),
        epoch=point.epoch,
        architecture=point.architecture,
        rebuild=words.rebuild(point.spec.model, point.spec.args, point.module),
        note=point.note,
    )


def cell(point: Point, name: str) -> Cell:
    """One quantity of a point; an accuracy of a shorter training says so."""
    value = point.values.get(name)
    partial = name == "accuracy" and value is not None and not point.trained_in_full
    return Cell(
        name=name,
        text=words.number(name, value),
        sort="" if value is None else repr(value),
        interval=words.interval(name, point.intervals.get(name)),
        remark=f"after {point.training}" if partial else "",
    )
