"""How one candidate was trained: validation accuracy with its 95% interval, and both losses below, by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.figures import palette
from dashboards.figures.curves import accuracy_range, rung_line
from dashboards.figures.palette import Theme
from search.store.read.rows import EpochView

ACCURACY_DOMAIN = [0.44, 1.0]
LOSS_DOMAIN = [0.0, 0.36]


@dataclass(frozen=True)
class TrainingInfo:
    """epochs: in order, each once. rungs: epochs where it is decided who goes on; longest: of a full training."""

    epochs: tuple[EpochView, ...]
    rungs: tuple[int, ...]
    longest: int


def training_info(epochs: Sequence[EpochView], rungs: Sequence[int], longest: int) -> TrainingInfo:
    """Rungs that the training has not come to are left out, and the end of a full training, which decides nothing."""
    ordered = tuple(sorted(epochs, key=lambda epoch: epoch.epoch))
    last = ordered[-1].epoch if ordered else 0
    return TrainingInfo(ordered, tuple(rung for rung in rungs if rung <= last and rung < longest), longest)


def draw(info: TrainingInfo, theme: Theme) -> dict[str, Any]:
    """A plotly figure as a dict; without any trace before the first epoch."""
    end = max(info.longest, *(epoch.epoch for epoch in info.epochs)) if info.epochs else info.longest
    look: dict[str, Any] = palette.layout(theme) | {
        "showlegend": True,
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": -0.16,
            "yanchor": "top",
            "traceorder": "normal",
            "font": {"size": 13},
        },
        "hovermode": "x unified",
        "margin": {"l": 64, "r": 16, "t": 28, "b": 24},
        "xaxis": palette.axis(theme, "epoch")
        | {
            "range": [0.5, end + 0.5],
            "dtick": max(1, end // 10),
            "tick0": 0,
            "anchor": "y2",
            "showgrid": False,
        },
        "yaxis": palette.axis(theme, "validation accuracy")
        | {
            "domain": ACCURACY_DOMAIN,
            "hoverformat": ".3f",
            "range": accuracy_range([end for e in info.epochs for end in (e.accuracy_low, e.accuracy_high)]),
        },
        "yaxis2": palette.axis(theme, "loss") | {"domain": LOSS_DOMAIN, "hoverformat": ".4~g"},
        "shapes": [rung_line(theme, rung) for rung in info.rungs],
    }
    return {"data": _traces(info, theme) if info.epochs else [], "layout": look}


def _traces(info: TrainingInfo, theme: Theme) -> list[dict[str, Any]]:
    x = [epoch.epoch for epoch in info.epochs]
    accuracy, training, validation = theme.curves[0], theme.curves[1], theme.curves[2]
    edge = {
        "type": "scatter",
        "x": x,
        "mode": "lines",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [
        edge | {"name": "95% low", "y": [epoch.accuracy_low for epoch in info.epochs]},
        edge
        | {
            "name": "95% interval",
            "y": [epoch.accuracy_high for epoch in info.epochs],
            "fill": "tonexty",
            "fillcolor": f"{accuracy}30",
            "showlegend": True,
        },
        _line("validation accuracy", x, [e.accuracy for e in info.epochs], accuracy, "circle", "solid"),
        _line("training loss", x, [e.train_loss for e in info.epochs], training, "square", "dash")
        | {"yaxis": "y2"},
        _line("validation loss", x, [e.val_loss for e in info.epochs], validation, "diamond", "solid")
        | {"yaxis": "y2"},
    ]


def _line(name: str, x: list[int], y: list[float], colour: str, symbol: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"symbol": symbol, "color": colour, "size": 6},
        "cliponaxis": False,
    }
