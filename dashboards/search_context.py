"""What a report or page of a search prints: from `SearchData` to the values that the templates take. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dashboards import conditions, front_told, summary, table
from dashboards.chart_data import chart_data
from dashboards.figures import front as front_figure
from dashboards.figures.curves import CurvesInfo, at_rungs, curves_info
from dashboards.figures.front import FrontInfo, front_info
from dashboards.figures.points import Point
from dashboards.search_data import MOST_EVENTS, SearchData, limit_words


@dataclass(frozen=True)
class SearchContext:
    """The figures of a search, and the words around them."""

    data: SearchData
    front: FrontInfo
    curves: CurvesInfo

    def chart(self) -> dict[str, Any]:
        """The data of the charts, for the script."""
        return chart_data(self.data.search.name, self.front, self.curves)

    def values(self, href: Callable[[Point], str] = table.no_page) -> dict[str, Any]:
        """Everything that the templates print. href: address of a point's own page, where there is one."""
        data = self.data
        return {
            "search": data.search,
            "headline": summary.headline(data),
            "figures": summary.figures(data),
            "front_words": summary.front_words(data),
            "borderline": front_told.borderline(data.view),
            "limits": limit_words(data.view),
            "front_caption": summary.front_caption(self.front),
            "axes": list(self.front.axes.values()),
            "wide": {name: front_figure.is_wide(self.front, name) for name in self.front.axes},
            "chosen": {"x": self.front.x, "y": self.front.y},
            "legend": table.legend(data.points),
            "columns": table.columns(self.front),
            "rows": table.rows(self.front, href),
            "curves_caption": summary.curves_caption(self.curves),
            "rungs": self.curves.rungs,
            "curve_rows": [
                {
                    "label": f"{curve.point.label} {curve.point.family}".strip(),
                    "cells": at_rungs(curve, self.curves.rungs),
                }
                for curve in self.curves.curves
            ],
            "measured_words": [
                (data.axes[name].label, how)
                for name, how in data.view.measured_how.items()
                if name in self.front.axes
            ],
            "conditions": conditions.conditions(data),
            "flagged": conditions.flagged(data),
            "settings": conditions.settings(data.search.config),
            "events": tuple(reversed(data.events)),
            "events_words": _events_words(len(data.events)),
        }


def search_context(data: SearchData) -> SearchContext:
    front = front_info(data.points, data.axes, data.objectives)
    return SearchContext(data, front, curves_info(data.points, data.scores, data.rungs, front.x))


def _events_words(number: int) -> str:
    return f"The last {number}, newest first." if number >= MOST_EVENTS else "Newest first."
