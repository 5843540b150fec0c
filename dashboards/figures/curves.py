"""Learning curves: validation accuracy by epoch, of the front and the baselines, with the rungs marked."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.figures import palette
from dashboards.figures.palette import CURVE_SYMBOLS, DASHES, Theme
from dashboards.figures.points import Point
from dashboards.words import for_pages, interval, number

MOST_CURVES = 12  # more cannot be told apart; the table below the figure holds them all


@dataclass(frozen=True)
class Score:
    """Validation accuracy after an epoch, with its 95% interval."""

    epoch: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """One candidate's scores, by epoch."""

    point: Point
    scores: tuple[Score, ...]

    def at(self, epoch: int) -> Score | None:
        """The score after `epoch` epochs, if it got there."""
        return next((score for score in self.scores if score.epoch == epoch), None)


@dataclass(frozen=True)
class CurvesInfo:
    """curves: baselines last, each with at least one score. rungs: epochs where it is decided who goes on."""

    curves: tuple[Curve, ...]
    rungs: tuple[int, ...]

    @property
    def drawn(self) -> tuple[Curve, ...]:
        """The curves of the figure: all baselines, and front points spread evenly where there are too many."""
        baselines = [curve for curve in self.curves if curve.point.group == palette.BASELINE]
        others = [curve for curve in self.curves if curve.point.group != palette.BASELINE]
        room = max(MOST_CURVES - len(baselines), 2)
        if len(others) > room:
            last = len(others) - 1
            others = [others[round(place * last / (room - 1))] for place in range(room)]
        return (*others, *baselines)


def curves_info(
    points: Sequence[Point], scores: Mapping[str, Sequence[Score]], rungs: Sequence[int], by: str
) -> CurvesInfo:
    """Curves of the front's points, ordered by the quantity `by`, then of the baselines. scores: by point key."""
    shown = [
        point
        for point in points
        if point.group in (palette.FRONT, palette.BASELINE) and scores.get(point.key)
    ]
    shown.sort(key=lambda point: (point.group == palette.BASELINE, point.values.get(by, 0.0), point.number))
    curves = tuple(
        Curve(point, tuple(sorted(scores[point.key], key=lambda score: score.epoch))) for point in shown
    )
    return CurvesInfo(curves=curves, rungs=tuple(rungs))


def draw(info: CurvesInfo, theme: Theme) -> dict[str, Any]:
    """A plotly figure as a dict: one line a curve, a larger marker at each rung."""
    longest = max((curve.scores[-1].epoch for curve in info.curves), default=1)
    look: dict[str, Any] = palette.layout(theme) | {
        "showlegend": True,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": -0.2,
            "yanchor": "top",
            "font": {"size": 13},
        },
        "margin": {"l": 64, "r": 16, "t": 28, "b": 24},
        "xaxis": palette.axis(theme, "epoch")
        | {"range": [0.5, longest + 0.5], "showgrid": False, "dtick": max(1, longest // 10), "tick0": 0},
        "yaxis": palette.axis(theme, "validation accuracy")
        | {"hoverformat": ".3f", "range": accuracy_range([s.accuracy for c in info.drawn for s in c.scores])},
        "shapes": [rung_line(theme, rung) for rung in info.rungs],
    }
    return {
        "data": [_line(info, theme, place, curve) for place, curve in enumerate(info.drawn)],
        "layout": look,
    }


def accuracy_range(accuracies: Sequence[float]) -> list[float] | None:
    """What an axis shows of accuracies: all of them with room on either side, also where they are all the same; as far
    as half that room beyond 0 and 1, which none can be. None for none, which plotly takes for its own range."""
    if not accuracies:
        return None
    low, high = min(accuracies), max(accuracies)
    room = max(0.06 * (high - low), 0.02)
    return [max(low - room, -room / 2), min(high + room, 1 + room / 2)]


def _line(info: CurvesInfo, theme: Theme, place: int, curve: Curve) -> dict[str, Any]:
    colour = theme.curves[place % len(theme.curves)]
    baseline = curve.point.group == palette.BASELINE
    if baseline:
        colour = theme.groups[palette.BASELINE]
    symbol = "star" if baseline else CURVE_SYMBOLS[place % len(CURVE_SYMBOLS)]
    name = html.escape(for_pages(f"{curve.point.label[:44]} {curve.point.family}".strip()), quote=False)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "meta": {"role": "curve", "group": curve.point.group},
        "x": [score.epoch for score in curve.scores],
        "y": [score.accuracy for score in curve.scores],
        "hovertext": [_hover(name, score) for score in curve.scores],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "line": {"color": colour, "width": 2, "dash": DASHES[place // len(theme.curves) % len(DASHES)]},
        "marker": {
            "symbol": symbol,
            "color": colour,
            "size": [_size(score.epoch in info.rungs, baseline) for score in curve.scores],
        },
        "cliponaxis": False,
    }


def _hover(name: str, score: Score) -> str:
    accuracy = (
        f"accuracy {number('accuracy', score.accuracy)} ({interval('accuracy', (score.low, score.high))})"
    )
    return f"<b>{name}</b><br>epoch {score.epoch}<br>{accuracy}"


def _size(at_rung: bool, baseline: bool) -> int:
    return (11 if at_rung else 4) + (3 if baseline else 0)


def rung_line(theme: Theme, rung: int) -> dict[str, Any]:
    """Its name stands above the plot, where no grid strikes it through."""
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": rung,
        "x1": rung,
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"color": theme.muted, "width": 1, "dash": "dot"},
        "label": {
            "text": f"rung {rung}",
            "textposition": "end",
            "textangle": 0,
            "xanchor": "center",
            "yanchor": "bottom",
            "font": {"size": 12, "color": theme.muted},
        },
    }


def at_rungs(curve: Curve, rungs: Sequence[int]) -> list[str]:
    """The accuracy with interval at each rung, as text for the table; a dash where it did not get there."""
    scores = [curve.at(rung) for rung in rungs]
    return [
        f"{number('accuracy', s.accuracy)} ({interval('accuracy', (s.low, s.high))})" if s else "–"
        for s in scores
    ]
