"""What the script of the front works with, as plain JSON: the points once, and each figure's look once a theme."""

from __future__ import annotations

from typing import Any

from dashboards.figures import curves, front, palette
from dashboards.figures.curves import CurvesInfo
from dashboards.figures.front import FrontInfo
from dashboards.figures.points import Point, hover


def chart_data(name: str, front_info: FrontInfo, curves_info: CurvesInfo) -> dict[str, Any]:
    """The object that `static/front.js` draws from. name: of the search, for files that are saved.

    points: key -> group, values, intervals, hover text (HTML of plotly's own kind, escaped), in drawing order.
    line: keys of the points that the front's line joins. looks: theme -> figures without points, and a limit's.
    """
    return {
        "name": name,
        "objectives": list(front_info.objectives),
        "chosen": {"x": front_info.x, "y": front_info.y},
        "axes": {axis: _axis(front_info, axis) for axis in front_info.axes},
        "points": {point.key: _point(point, front_info) for point in front_info.points},
        "line": [point.key for point in front.front_line(front_info)],
        "strip": front.STRIP_DOMAIN,
        "looks": {
            key: {
                "front": front.draw(front_info, theme),
                "curves": curves.draw(curves_info, theme),
                "limit": front.limit_look(theme),
            }
            for key, theme in palette.THEMES.items()
        },
    }


def _axis(info: FrontInfo, name: str) -> dict[str, Any]:
    axis = info.axes[name]
    return {
        "label": axis.label,
        "title": axis.title,
        "direction": axis.direction,
        "limit": axis.limit,
        "wide": front.is_wide(info, name),
    }


def _point(point: Point, info: FrontInfo) -> dict[str, Any]:
    return {
        "group": point.group,
        "values": dict(point.values),
        "intervals": {name: list(bounds) for name, bounds in point.intervals.items()},
        "hover": hover(point, list(info.axes)),
    }
