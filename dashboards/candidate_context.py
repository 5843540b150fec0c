"""What the page of a candidate prints: from `CandidateData` to the values that the templates take. Pure."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards import words
from dashboards.candidate_data import CandidateData
from dashboards.figures import palette, training
from dashboards.figures.points import Point, label, make_point
from dashboards.measurement_words import measurement_table
from dashboards.search_data import quantity_label
from dashboards.standing import verdict
from search import chance, executions
from search.front import FrontPoint
from search.objectives import quantity
from search.store.read.rows import EvaluationView


@dataclass(frozen=True)
class QuantityLine:
    """One quantity. exact: the stored value, as JSON writes it."""

    label: str
    text: str
    exact: str
    interval: str
    remark: str
    how: str


MOST_TAKEN_FOR = 3


@dataclass(frozen=True)
class Recall:
    """Of one class. value: None where the split has no image of it. interval: empty where none was stored.
    taken_for: the other classes that its images were taken for, and how many of them, the most frequent first."""

    name: str
    text: str
    value: float | None
    interval: str = ""
    taken_for: tuple[tuple[str, int], ...] = ()


def values(data: CandidateData) -> dict[str, Any]:
    """Everything that the templates print."""
    row, point = data.row, make_point(data.point, data.full)
    found = verdict(data.view, data.point, data.full)
    newest = data.evaluations[0] if data.evaluations else None
    return {
        "search": data.search,
        "label": point.label,
        "point": point,
        "row": row,
        "group": palette.GROUPS[point.group],
        "verdict": found,
        "label_of": label,
        "previous": _beside(data, -1),
        "next": _beside(data, 1),
        "dimensions": _dimensions(point, row.point),
        "model": _model(point),
        "analysis": [
            (name.replace("_", " "), words.scaled(float(value))) for name, value in row.analysis.items()
        ],
        "rebuild": words.rebuild(row.spec.model, row.spec.args, point.module),
        "quantities": _quantities(data, point),
        "began": _began(data),
        "has_rungs": any(rung < data.full for rung in data.rungs),
        "learns": data.began.teacher is not None,
        "epochs": data.epochs,
        "execution": executions.of(data.search, row),
        "trials": _trials(data),
        "number": words.number,
        "interval": words.interval,
        "significant": words.significant,
        "duration": words.duration,
        "evaluation": newest,
        "recall": [] if newest is None else recall(newest),
        "measurements": measurement_table(data.measurements, time.time()),
        "attempts": data.attempts,
        "files": data.artifacts,
        "folder": data.search.artifacts,
    }


def chart(data: CandidateData) -> dict[str, Any]:
    """The learning curve, for the script: a figure a theme."""
    info = training.training_info(data.epochs, data.rungs, data.full)
    return {
        "name": f"{data.search.name}-{label(data.row)}",
        "looks": {key: {"curves": training.draw(info, theme)} for key, theme in palette.THEMES.items()},
    }


def recall(evaluation: EvaluationView) -> list[Recall]:
    """Of every class, the lowest first: those are what a user looks for."""
    figures = evaluation.figures
    names, values = [str(name) for name in figures["class_names"]], figures["recall"]
    nothing = [None] * len(names)
    bounds = zip(figures.get("recall_low", nothing), figures.get("recall_high", nothing), strict=True)
    taken: dict[int, list[tuple[str, int]]] = {}
    for own, other, count in figures.get("confusions", ()):
        taken.setdefault(own, []).append((names[other], count))
    found = [
        Recall(
            name,
            words.number("recall", value),
            value,
            words.interval("recall", None if None in pair else pair),
            tuple(taken.get(place, [])[:MOST_TAKEN_FOR]),
        )
        for place, (name, value, pair) in enumerate(zip(names, values, bounds, strict=True))
    ]
    return sorted(found, key=lambda one: (one.value is None, one.value or 0.0))


def _beside(data: CandidateData, step: int) -> FrontPoint | None:
    """The candidate before or after it by number; of a baseline, the baseline."""
    among: Sequence[FrontPoint] = data.view.baselines if data.row.is_baseline else data.view.candidates
    place = next(i for i, point in enumerate(among) if point.row.id == data.row.id) + step
    return among[place] if 0 <= place < len(among) else None


def _dimensions(point: Point, chosen: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name.removeprefix(f"{point.family}.").replace("_", " "), words.plain(value))
        for name, value in chosen.items()
        if name != "family"
    ]


def _trials(data: CandidateData) -> list[tuple[str, str]]:
    """Ways to execute its training that a probe compared, and what it found of each."""
    choice = executions.of(data.search, data.row)
    known = [] if choice is None else choice.known["trials"]
    return [(each["execution"], executions.trial_words(each)) for each in known]


def _model(point: Point) -> list[tuple[str, str]]:
    spec = point.spec
    weights = [("pretrained weights", spec.weights)] if spec.weights else []
    arguments = [(name, json.dumps(value, ensure_ascii=False)) for name, value in spec.args.items()]
    return [("timm model", spec.model), *weights, ("image size", f"{spec.image_size} px"), *arguments]


def _began(data: CandidateData) -> list[tuple[str, str]]:
    lines = [("began from", data.began.weights), ("learns from", data.began.teacher)]
    return [(term, text) for term, text in lines if text is not None]


def _quantities(data: CandidateData, point: Point) -> list[QuantityLine]:
    how = data.view.measured_how_of(data.point)
    remarks = [] if point.trained_in_full else [f"after {point.training}"]
    low, _ = point.intervals.get("accuracy", (None, None))
    remarks += [text] if (text := chance.remark(low, data.search.data)) else []
    return [
        QuantityLine(
            label=quantity_label(quantity(name)),
            text=words.number(name, value),
            exact=repr(value),
            interval=words.interval(name, point.intervals.get(name)),
            remark=", ".join(remarks) if name == "accuracy" else "",
            how=how.get(name, ""),
        )
        for name, value in point.values.items()
    ]
