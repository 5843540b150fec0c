"""The front: quality against cost, one point a candidate.

`front_info` says what is to be seen, as plain data; `draw` turns it into a plotly figure. What has no value on the y
axis (a candidate rejected before any training has no accuracy) stands in a strip of its own below the plot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.figures import palette
from dashboards.figures.palette import GROUPS, Group, Theme
from dashboards.figures.points import Point

STRIP_HEIGHT = 0.07
STRIP_DOMAIN = 0.13  # where the plot begins when there is a strip below it, as a share of the height
BARRED = (palette.FRONT, palette.BORDERLINE, palette.BASELINE)  # groups whose intervals are drawn
LOG_FROM = 20.0  # an axis is logarithmic at first when its largest value is this many times its smallest


@dataclass(frozen=True)
class Axis:
    """A quantity that points can be drawn by. direction: `max` or `min` is better. is_cost: against a quality.
    limit: its constraint, if any."""

    name: str
    label: str
    direction: str
    is_cost: bool = True
    limit: float | None = None

    @property
    def title(self) -> str:
        return f"{self.label} – {'higher' if self.direction == 'max' else 'lower'} is better"


@dataclass(frozen=True)
class FrontInfo:
    """axes: by name, the search's objectives first. objectives: names. points: in drawing order. x, y: the axes that
    are shown first."""

    axes: Mapping[str, Axis]
    objectives: tuple[str, ...]
    points: tuple[Point, ...]
    x: str
    y: str


def front_info(points: Sequence[Point], axes: Mapping[str, Axis], objectives: Sequence[str]) -> FrontInfo:
    """What the figure shows. Axes without a single value are left out; y is the first objective that is to be
    maximised, x the first other one."""
    used = {name: axis for name, axis in axes.items() if any(name in point.values for point in points)}
    for name in objectives:
        used.setdefault(name, axes[name])
    ordered = {name: used[name] for name in [*objectives, *(name for name in used if name not in objectives)]}
    y = next((name for name in objectives if ordered[name].direction == "max"), objectives[0])
    x = next((name for name in objectives if name != y), None) or next((n for n in ordered if n != y), y)
    order = list(GROUPS)
    drawn = tuple(sorted(points, key=lambda point: (order.index(point.group), point.number)))
    return FrontInfo(axes=ordered, objectives=tuple(objectives), points=drawn, x=x, y=y)


def front_line(info: FrontInfo) -> list[Point]:
    """The points that the front's line joins, by `info.x`. A line needs two objectives: of one there is a best point
    only, of three the front is a surface."""
    if {info.x, info.y} != set(info.objectives) or len(info.objectives) != 2:
        return []
    on_front = [point for point in info.points if point.group == palette.FRONT]
    return sorted(on_front, key=lambda point: point.values[info.x])


def is_wide(info: FrontInfo, name: str) -> bool:
    """Whether the values of a quantity spread so far that a logarithmic axis shows them better."""
    values = [point.values[name] for point in info.points if point.values.get(name, 0) > 0]
    return bool(values) and info.axes[name].is_cost and max(values) >= LOG_FROM * min(values)


def draw(info: FrontInfo, theme: Theme) -> dict[str, Any]:
    """How the figure looks: a plotly figure as a dict, without its points, which the page's script places on whatever
    axes the reader chooses. Each trace's `meta` has a role (line, points, strip, or chosen: a ring around the reader's
    point), a group, and whether it has bars."""
    traces = [_line(theme)]
    for group in GROUPS.values():
        bars = group.key in BARRED
        marker = _marker(theme, group)
        traces.append(marker | {"meta": {"role": "points", "group": group.key, "bars": bars}})
        traces[-1] |= {"error_x": _bars(theme, group), "error_y": _bars(theme, group), "cliponaxis": False}
        traces.append(marker | {"meta": {"role": "strip", "group": group.key, "bars": False}, "yaxis": "y2"})
    traces.append(_ring(theme))
    look: dict[str, Any] = palette.layout(theme) | {
        "showlegend": False,
        "margin": {"l": 64, "r": 16, "t": 24, "b": 56},
        "xaxis": palette.axis(theme, info.axes[info.x].title) | {"hoverformat": ".4~g"},
        "yaxis": palette.axis(theme, info.axes[info.y].title) | {"hoverformat": ".4~g"},
        "yaxis2": _strip_axis(theme),
    }
    return {"data": traces, "layout": look}


def _strip_axis(theme: Theme) -> dict[str, Any]:
    return palette.axis(theme, "") | {
        "domain": [0, STRIP_HEIGHT],
        "range": [-1, 1],
        "fixedrange": True,
        "showgrid": False,
        "tickvals": [0],
        "ticks": "",
    }


def _line(theme: Theme) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "front",
        "meta": {"role": "line", "group": palette.FRONT, "bars": False},
        "line": {"color": theme.groups[palette.FRONT], "width": 2},
        "opacity": 0.5,
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def _marker(theme: Theme, group: Group) -> dict[str, Any]:
    colour = theme.groups[group.key]
    outline = theme.background if group.filled else colour
    return {
        "type": "scatter",
        "mode": "markers",
        "name": group.label,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "symbol": group.symbol,
            "size": group.size,
            "color": colour,
            "line": {"width": 1 if group.filled else 1.8, "color": outline},
        },
    }


def _ring(theme: Theme) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "chosen",
        "meta": {"role": "chosen", "group": "", "bars": False},
        "hoverinfo": "skip",
        "marker": {"symbol": "circle-open", "size": 22, "color": theme.ink, "line": {"width": 2}},
        "cliponaxis": False,
    }


def _bars(theme: Theme, group: Group) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "color": theme.groups[group.key],
        "thickness": 1,
        "width": 3,
    }


def limit_look(theme: Theme) -> dict[str, Any]:
    """A dashed line for a limit, and its name, which stands on a ground of its own; but for where they stand."""
    return {
        "line": {
            "type": "line",
            "line": {"color": theme.limit, "width": 1.5, "dash": "dash"},
            "layer": "below",
        },
        "name": {
            "text": "limit",
            "showarrow": False,
            "bgcolor": theme.background,
            "borderpad": 1,
            "font": {"color": theme.limit, "size": 12},
        },
    }
