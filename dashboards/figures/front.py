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
from dashboards.figures.points import Point, hover

STRIP_HEIGHT = 0.07
STRIP_DOMAIN = 0.13  # where the plot begins when there is a strip below it, as a share of the height
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


def front_line(info: FrontInfo, x: str, y: str) -> list[Point]:
    """The points that the front's line joins, by x; empty where the axes are not the search's two objectives."""
    if {x, y} != set(info.objectives) or len(info.objectives) != 2:
        return []
    on_front = [p for p in info.points if p.group == palette.FRONT and x in p.values and y in p.values]
    return sorted(on_front, key=lambda point: point.values[x])


def is_wide(info: FrontInfo, name: str) -> bool:
    """Whether the values of a quantity spread so far that a logarithmic axis shows them better."""
    values = [point.values[name] for point in info.points if point.values.get(name, 0) > 0]
    return bool(values) and info.axes[name].is_cost and max(values) >= LOG_FROM * min(values)


def draw(info: FrontInfo, theme: Theme, x: str | None = None, y: str | None = None) -> dict[str, Any]:
    """A plotly figure as a dict. Each trace's `meta` has a role (line, points, strip) and a group, and its `ids` the
    keys of its points, which is what the page needs to change the axes."""
    x, y = x or info.x, y or info.y
    in_strip = [p for p in info.points if x in p.values and y not in p.values]
    traces = [_line(info, theme, x, y)]
    for group in GROUPS.values():
        points = [point for point in info.points if point.group == group.key]
        if points:
            traces.append(_points(info, theme, group, points, x, y))
            traces.append(_strip(info, theme, group, points, x, y))
    look: dict[str, Any] = palette.layout(theme) | {
        "showlegend": False,
        "margin": {"l": 64, "r": 16, "t": 24, "b": 56},
        "xaxis": _axis(info, theme, x) | {"anchor": "y2" if in_strip else "y"},
        "yaxis": _axis(info, theme, y) | {"domain": [STRIP_DOMAIN if in_strip else 0, 1]},
        "yaxis2": _strip_axis(theme, bool(in_strip), y),
        "shapes": _limits(info, theme, x, y),
    }
    return {"data": traces, "layout": look}


def _axis(info: FrontInfo, theme: Theme, name: str) -> dict[str, Any]:
    kind = "log" if is_wide(info, name) else "linear"
    return palette.axis(theme, info.axes[name].title) | {"type": kind, "hoverformat": ".4~g"}


def _strip_axis(theme: Theme, visible: bool, y: str) -> dict[str, Any]:
    return palette.axis(theme, "") | {
        "domain": [0, STRIP_HEIGHT],
        "range": [-1, 1],
        "fixedrange": True,
        "visible": visible,
        "showgrid": False,
        "tickvals": [0],
        "ticktext": [f"no<br>{y}".replace("_", " ")],
        "ticks": "",
    }


def _line(info: FrontInfo, theme: Theme, x: str, y: str) -> dict[str, Any]:
    line = front_line(info, x, y)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "front",
        "meta": {"role": "line", "group": palette.FRONT},
        "ids": [point.key for point in line],
        "x": [point.values[x] for point in line],
        "y": [point.values[y] for point in line],
        # What the front attains between two of its points is the worse point's value, not a straight line.
        "line": {
            "shape": "hv" if info.axes[x].direction == "min" else "vh",
            "color": theme.groups[palette.FRONT],
            "width": 2,
        },
        "opacity": 0.5,
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def _points(
    info: FrontInfo, theme: Theme, group: Group, points: list[Point], x: str, y: str
) -> dict[str, Any]:
    bars = group.key in (palette.FRONT, palette.BASELINE)
    both = [point if x in point.values and y in point.values else None for point in points]
    return _trace(info, theme, group, points) | {
        "meta": {"role": "points", "group": group.key, "bars": bars},
        "x": [point.values[x] if point else None for point in both],
        "y": [point.values[y] if point else None for point in both],
        "error_x": _error(theme, group, points, x, bars),
        "error_y": _error(theme, group, points, y, bars),
        "cliponaxis": False,
    }


def _strip(
    info: FrontInfo, theme: Theme, group: Group, points: list[Point], x: str, y: str
) -> dict[str, Any]:
    return _trace(info, theme, group, points) | {
        "meta": {"role": "strip", "group": group.key},
        "x": [point.values[x] if x in point.values and y not in point.values else None for point in points],
        "y": [0] * len(points),
        "yaxis": "y2",
    }


def _trace(info: FrontInfo, theme: Theme, group: Group, points: list[Point]) -> dict[str, Any]:
    colour = theme.groups[group.key]
    outline = theme.background if group.filled else colour
    return {
        "type": "scatter",
        "mode": "markers",
        "name": group.label,
        "ids": [point.key for point in points],
        "hovertext": [hover(point, list(info.axes)) for point in points],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "symbol": group.symbol,
            "size": group.size,
            "color": colour,
            "line": {"width": 1 if group.filled else 1.8, "color": outline},
        },
    }


def _error(theme: Theme, group: Group, points: list[Point], name: str, bars: bool) -> dict[str, Any]:
    spans = [(point.values.get(name), point.intervals.get(name)) for point in points]
    return {
        "visible": bars and any(bounds for _, bounds in spans),
        "type": "data",
        "symmetric": False,
        "array": [bounds[1] - value if value is not None and bounds else 0 for value, bounds in spans],
        "arrayminus": [value - bounds[0] if value is not None and bounds else 0 for value, bounds in spans],
        "color": theme.groups[group.key],
        "thickness": 1,
        "width": 3,
    }


def limit_shape(theme: Theme) -> dict[str, Any]:
    """A dashed line for a limit, but for where it stands."""
    return {
        "type": "line",
        "line": {"color": theme.limit, "width": 1.5, "dash": "dash"},
        "layer": "below",
        "label": {
            "text": "limit",
            "textposition": "end",
            "textangle": 0,
            "font": {"color": theme.limit, "size": 12},
        },
    }


def _limits(info: FrontInfo, theme: Theme, x: str, y: str) -> list[dict[str, Any]]:
    """The limits of the two axes, each across the whole plot."""
    across = {"xref": "paper", "x0": 0, "x1": 1}
    up = {"yref": "paper", "y0": 0, "y1": 1}
    shapes = []
    if (limit := info.axes[x].limit) is not None:
        shapes.append(limit_shape(theme) | up | {"xref": "x", "x0": limit, "x1": limit})
    if (limit := info.axes[y].limit) is not None:
        shapes.append(limit_shape(theme) | across | {"yref": "y", "y0": limit, "y1": limit})
    return shapes
