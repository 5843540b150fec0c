"""How long jobs will take, from how long jobs took. Pure.

The seconds an epoch takes are those that the candidate has shown; of one that has not trained yet, its family's, times
a power of its FLOPs. Other kinds take what their kind took. All is in logarithms: a job is off by a factor, not by
seconds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, fmean

from workers.job import Kind

TRAINS = frozenset({Kind.TRAIN, Kind.TEACH})
SHARE_COVERED = 0.9
"""Of the jobs, those that take a time between `low` and `high`."""

_Z = NormalDist().inv_cdf(0.5 + SHARE_COVERED / 2)
_SLOPE, _SLOPE_WEIGHT = 0.8, 2.0
"""Of log seconds over log FLOPs, before anything is known, and how much spread of log FLOPs outweighs it."""
_DOUBT, _DOUBT_WEIGHT = 0.4, 4.0
"""Standard deviation of log seconds before anything is known, and how many jobs it counts for."""
_OWN_DOUBT = 0.15
"""The same of a candidate that has trained before."""


@dataclass(frozen=True)
class Work:
    """What a job has to do. flops: of one image, forward; None where it is not known. epochs: to train, else 0."""

    kind: Kind
    candidate: int
    family: str
    flops: float | None = None
    epochs: int = 0

    @property
    def size(self) -> int:
        """What its seconds are divided by."""
        return max(1, self.epochs)


@dataclass(frozen=True)
class Length:
    """Seconds that a job takes: the expected ones (the median), and what nine in ten jobs lie between."""

    seconds: float
    low: float
    high: float


@dataclass(frozen=True)
class Lengths:
    """Predicts from what was done. done: jobs that ended by themselves, with the seconds that each took."""

    done: Sequence[tuple[Work, float]] = ()

    def predict(self, work: Work) -> Length | None:
        """None where nothing of its kind was done yet."""
        found = self._training(work) if work.kind in TRAINS else self._other(work.kind)
        if found is None:
            return None
        middle, doubt = found
        middle += math.log(work.size)
        return Length(math.exp(middle), math.exp(middle - _Z * doubt), math.exp(middle + _Z * doubt))

    def mean(self, kind: Kind) -> Length:
        """Of the jobs of a kind of candidates, of an epoch where they train. Nothing at all where none had to be done:
        figures that were measured before take no time."""
        found = [(past.size, took) for past, took in self.done if past.kind == kind and past.candidate > 0]
        if not found:
            return Length(0.0, 0.0, 0.0)
        return self.about([seconds / size for size, seconds in found], [size for size, _ in found])

    @staticmethod
    def about(values: Sequence[float], weights: Sequence[float] | None = None) -> Length:
        """The mean of a few, and where that of many more probably lies: within two standard errors, and a tenth at
        least. Raises ValueError of none."""
        mean = fmean(values, weights)
        error = math.sqrt(_spread(values) / max(1, len(values) - 1) / len(values))
        share = min(0.9, max(0.1, 2 * error / mean))
        return Length(mean, mean * (1 - share), mean * (1 + share))

    def _training(self, work: Work) -> tuple[float, float] | None:
        """Mean and standard deviation of log seconds an epoch."""
        own = self._own.get(work.candidate)
        if own is not None:
            return fmean(own), self._own_doubt
        if self._fit is None:
            return None
        doubt = self._fit.doubt_of(work.family)
        return self._fit.level(work.family) + self._fit.slope * _log(work.flops, self._fit.flops), doubt

    def _other(self, kind: Kind) -> tuple[float, float] | None:
        logs = [math.log(max(seconds, 1e-3)) for past, seconds in self.done if past.kind == kind]
        return (fmean(logs), _doubt(_spread(logs), len(logs) - 1, _DOUBT)) if logs else None

    @cached_property
    def _epochs(self) -> list[tuple[Work, float]]:
        """Trainings, with their log seconds an epoch."""
        return [
            (past, math.log(max(seconds, 1e-3) / past.size))
            for past, seconds in self.done
            if past.kind in TRAINS
        ]

    @cached_property
    def _own(self) -> dict[int, list[float]]:
        """The same by candidate."""
        return _grouped((past.candidate, y) for past, y in self._epochs)

    @cached_property
    def _own_doubt(self) -> float:
        """How much the epochs of one candidate differ from one job to the next."""
        groups = self._own.values()
        return _doubt(
            sum(_spread(each) for each in groups), sum(len(each) - 1 for each in groups), _OWN_DOUBT
        )

    @cached_property
    def _fit(self) -> _Fit | None:
        return _fit(self._epochs) if self._epochs else None


@dataclass(frozen=True)
class _Fit:
    """log seconds an epoch = level of its family + slope * log FLOPs.

    numbers: trainings by family. flops: mean log of those known. doubt: standard deviation about the line.
    """

    slope: float
    levels: dict[str, float]
    numbers: dict[str, int]
    common: float
    flops: float
    doubt: float

    def level(self, family: str) -> float:
        return self.levels.get(family, self.common)

    def doubt_of(self, family: str) -> float:
        """Of one more training: about the line, and of where the line lies."""
        return self.doubt * math.sqrt(1 + 1 / (self.numbers.get(family, 0) + 0.5))


def _fit(trainings: Sequence[tuple[Work, float]]) -> _Fit:
    """Least squares with one slope and a level for each family, both drawn to what is usual while little is known."""
    known = [math.log(past.flops) for past, _ in trainings if past.flops]
    mean = fmean(known) if known else 0.0
    families: dict[str, list[tuple[float, float]]] = {}
    for past, y in trainings:
        families.setdefault(past.family, []).append((_log(past.flops, mean), y))
    across, along = _SLOPE * _SLOPE_WEIGHT, _SLOPE_WEIGHT
    for points in families.values():
        center_x, center_y = fmean(x for x, _ in points), fmean(y for _, y in points)
        across += sum((x - center_x) * (y - center_y) for x, y in points)
        along += sum((x - center_x) ** 2 for x, _ in points)
    slope = min(1.2, max(0.0, across / along))
    rests = {name: [y - slope * x for x, y in points] for name, points in families.items()}
    common = fmean(rest for own in rests.values() for rest in own)
    levels = {name: (sum(own) + common) / (len(own) + 1) for name, own in rests.items()}
    squares = sum((rest - levels[name]) ** 2 for name, own in rests.items() for rest in own)
    doubt = _doubt(squares, len(trainings) - len(levels) - 1, _DOUBT)
    numbers = {name: len(own) for name, own in rests.items()}
    return _Fit(slope, levels, numbers, common, mean, doubt)


def _log(flops: float | None, otherwise: float) -> float:
    return math.log(flops) if flops else otherwise


def _spread(values: Collection[float]) -> float:
    """Sum of the squared differences from their mean."""
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)


def _doubt(squares: float, number: float, before: float) -> float:
    """Standard deviation from a sum of squares, drawn to what was believed before."""
    return math.sqrt((squares + _DOUBT_WEIGHT * before**2) / (max(0.0, number) + _DOUBT_WEIGHT))


def _grouped(pairs: Iterable[tuple[int, float]]) -> dict[int, list[float]]:
    groups: dict[int, list[float]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
