"""How many candidates, jobs, epochs and hours a search comes to, before it has spent them. Pure.

A search is taken to do what its rungs do: of those that are trained, a third goes on from each rung. What is rejected
is measured and not trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from search import rungs
from search.lengths import Length

USED = 0.95
"""Share of the workers' time that is spent in jobs."""
_MOST = 1_000_000


@dataclass(frozen=True)
class Range:
    """The expected number, and what it probably lies between."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Shape:
    """What a search is, as far as its length goes.

    rungs: cumulative epochs. rejected: share of the candidates that break a limit. fixed_jobs, fixed_epochs: of
    baselines and a teacher. fixed_seconds: what goes before the first candidate's training, in seconds of one worker.
    most_candidates, seconds, epochs: what may be spent; infinite where nothing limits it.
    """

    rungs: tuple[int, ...]
    workers: int
    num_objectives: int = 2
    rejected: float = 0.0
    fixed_jobs: int = 0
    fixed_epochs: int = 0
    fixed_seconds: float = 0.0
    most_candidates: float = math.inf
    seconds: float = math.inf
    epochs: float = math.inf


@dataclass(frozen=True)
class Forecast:
    """ends_by: what ends the search: `candidates`, `time` or `epochs`. basis: what the lengths of jobs are from."""

    candidates: Range
    jobs: Range
    epochs: Range
    hours: Range
    ends_by: str
    basis: str = ""
    made: float = field(default=0.0)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Forecast:
        names = ("candidates", "jobs", "epochs", "hours")
        ranges: dict[str, Any] = {name: Range(**data[name]) for name in names}
        return cls(**data | ranges)


def forecast(shape: Shape, measure: Length, epoch: Length, basis: str = "", made: float = 0.0) -> Forecast:
    """measure: how long a candidate's measurement takes. epoch: one epoch of a training. made: UTC seconds.

    Raises ValueError where nothing ends the search.
    """
    if math.inf == min(shape.most_candidates, shape.seconds, shape.epochs):
        raise ValueError("nothing ends the search: neither candidates, nor time, nor epochs are limited")
    middle = _count(shape, measure.seconds, epoch.seconds)
    long, short = _count(shape, measure.high, epoch.high), _count(shape, measure.low, epoch.low)

    def between(values: Sequence[float]) -> Range:
        return Range(values[0], min(values), max(values))

    counts = [middle, long, short]
    return Forecast(
        candidates=between([each.candidates for each in counts]),
        jobs=between([each.jobs for each in counts]),
        epochs=between([each.epochs for each in counts]),
        hours=between([each.seconds / 3600 for each in counts]),
        ends_by=middle.ends_by,
        basis=basis,
        made=made,
    )


@dataclass(frozen=True)
class _Count:
    candidates: int
    jobs: int
    epochs: int
    seconds: float
    ends_by: str


def _count(shape: Shape, measure: float, epoch: float) -> _Count:
    """The most candidates that everything leaves room for."""
    most = int(min(shape.most_candidates, _MOST))
    low, high = 0, most
    while low < high:  # the largest number that fits
        middle = (low + high + 1) // 2
        if _fits(shape, middle, measure, epoch):
            low = middle
        else:
            high = middle - 1
    jobs, epochs = _work(shape, low)
    seconds = _seconds(shape, low, measure, epoch)
    if low == most and _fits(shape, low, measure, epoch):
        return _Count(low, jobs, epochs, seconds, "candidates")
    _, next_epochs = _work(shape, low + 1)
    if next_epochs > shape.epochs:
        return _Count(low, jobs, epochs, min(seconds, shape.seconds), "epochs")
    return _Count(low, jobs, epochs, shape.seconds, "time")


def _fits(shape: Shape, candidates: int, measure: float, epoch: float) -> bool:
    _, epochs = _work(shape, candidates)
    return epochs <= shape.epochs and _seconds(shape, candidates, measure, epoch) <= shape.seconds


def _work(shape: Shape, candidates: int) -> tuple[int, int]:
    """Jobs and epochs, with those of baselines and a teacher."""
    jobs, epochs, before = shape.fixed_jobs + candidates, shape.fixed_epochs, 0
    trained = round(candidates * (1 - shape.rejected))
    for rung in shape.rungs:
        jobs += trained
        epochs += trained * (rung - before)
        before, trained = rung, rungs.quota(trained, shape.num_objectives)
    return jobs, epochs


def _seconds(shape: Shape, candidates: int, measure: float, epoch: float) -> float:
    _, epochs = _work(shape, candidates)
    worked = shape.fixed_seconds + candidates * measure + (epochs - shape.fixed_epochs) * epoch
    return worked / (shape.workers * USED)
