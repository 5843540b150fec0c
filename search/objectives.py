"""Quantities that a search trades or bounds: their names, directions and units. Pure.

Messages of the errors here start behind the key: `search.config` puts `objectives:` or `constraints:` in
front.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from search import named_runtimes
from search.config_errors import nearest

MAX_OBJECTIVES = 3


@dataclass(frozen=True)
class Quantity:
    """Something known of a candidate. kind: what the model is good for, or what it costs. unit: "" for a
    fraction."""

    name: str
    direction: Literal["max", "min"]
    unit: str
    kind: Literal["quality", "cost"]
    label: str

    @property
    def maximise(self) -> bool:
        return self.direction == "max"


QUANTITIES: Mapping[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity("accuracy", "max", "", "quality", "validation accuracy"),
        Quantity("latency_ms", "min", "ms", "cost", "latency, median"),
        Quantity("latency_ms_p95", "min", "ms", "cost", "latency, 95th percentile"),
        Quantity("throughput", "max", "images/s", "cost", "throughput"),
        Quantity("peak_memory_mb", "min", "MB", "cost", "peak memory"),
        Quantity("energy_mj", "min", "mJ", "cost", "energy an image"),
        Quantity("model_mb", "min", "MB", "cost", "size of the weights"),
        Quantity("params", "min", "", "cost", "parameters"),
        Quantity("flops", "min", "", "cost", "FLOPs an image"),
    )
}


@dataclass(frozen=True)
class Constraint:
    """A bound as the user wrote it: `limit` itself, or `factor` times the same quantity of `baseline`."""

    name: str
    limit: float | None = None
    baseline: str | None = None
    factor: float | None = None

    @property
    def text(self) -> str:
        return f"{self.limit:g}" if self.limit is not None else f"{self.factor:g}x {self.baseline}"


@dataclass(frozen=True)
class Limit:
    """A bound as a number. upper: the value may not exceed it; otherwise it may not fall below. low, high: what lies
    between is not told apart from it, as the cost of a baseline that it follows from is known to an interval."""

    name: str
    value: float
    upper: bool
    low: float | None = None
    high: float | None = None

    def violation(self, value: float) -> float:
        """By what share of the limit `value` breaks it: value ÷ limit − 1, negated for a lower bound.

        Positive when broken, negative when there is room; of one scale for all quantities.
        """
        excess = value / self.value - 1
        return excess if self.upper else -excess

    def allows(self, value: float) -> bool:
        """Whether `value` keeps the bound; NaN never does."""
        return value <= self.value if self.upper else value >= self.value

    def may_allow(self, value: float) -> bool:
        """Whether `value` keeps the bound somewhere in the bound's interval; NaN never does."""
        if self.upper:
            return value <= (self.value if self.high is None else self.high)
        return value >= (self.value if self.low is None else self.low)

    def surely_allows(self, value: float) -> bool:
        """Whether it keeps the bound all over that interval."""
        if self.upper:
            return value <= (self.value if self.low is None else self.low)
        return value >= (self.value if self.high is None else self.high)


def parse_objectives(names: Sequence[str]) -> tuple[Quantity, ...]:
    """The quantities of 1 to 3 different names. Raises ValueError naming the offending one and the known
    ones."""
    if not names:
        raise ValueError(f"is empty; name 1 to {MAX_OBJECTIVES} of {_known()}")
    quantities = tuple(quantity(name) for name in names)
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ValueError(f"{name!r} is there twice")
    if len(names) > MAX_OBJECTIVES:
        raise ValueError(f"{len(names)} are too many; name 1 to {MAX_OBJECTIVES}")
    return quantities


def parse_constraints(bounds: Mapping[str, float | str]) -> tuple[Constraint, ...]:
    """Bounds by quantity: a number, or `1.5x NAME` for that multiple of a baseline's.

    Raises ValueError, starting with the quantity's name, for an unknown one and for what is no positive
    number.
    """
    return tuple(_constraint(quantity(name), bound) for name, bound in bounds.items())


def resolve(
    constraints: Sequence[Constraint],
    baselines: Mapping[str, Mapping[str, float]],
    intervals: Mapping[str, Mapping[str, Sequence[float]]] = MappingProxyType({}),
) -> tuple[Limit, ...]:
    """Constraints as numbers. baselines: name -> what was measured of it. intervals: the 95% intervals of that, where
    there are some; a limit that follows from a cost has one too.

    Raises ValueError when a baseline is unknown or lacks the quantity, or has a value that no multiple of
    can bound.
    """
    return tuple(
        Limit(
            constraint.name,
            _number(constraint, baselines),
            not quantity(constraint.name).maximise,
            *_bounds(constraint, intervals),
        )
        for constraint in constraints
    )


def _bounds(
    constraint: Constraint, intervals: Mapping[str, Mapping[str, Sequence[float]]]
) -> tuple[float, float] | tuple[()]:
    """Of a limit that follows from a cost of a baseline; qualities are taken as they were found."""
    found = intervals.get(constraint.baseline or "", {}).get(constraint.name)
    if constraint.factor is None or found is None or quantity(constraint.name).kind != "cost":
        return ()
    return constraint.factor * found[0], constraint.factor * found[1]


def quantity(name: str) -> Quantity:
    """The quantity of that name, which may name a runtime (`latency_ms@onnxruntime`). Raises ValueError naming the
    nearest, or all known ones."""
    if isinstance(name, str) and name in QUANTITIES:
        return QUANTITIES[name]
    base, at, place = str(name).partition("@")
    if at and base in QUANTITIES:
        return _in_runtime(QUANTITIES[base], place)
    raise ValueError(f"unknown quantity {str(name)[:60]!r}; {nearest(str(name), QUANTITIES)}")


def _in_runtime(of: Quantity, place: str) -> Quantity:
    if of.name not in named_runtimes.QUANTITIES:
        known = ", ".join(named_runtimes.QUANTITIES)
        raise ValueError(f"{of.name} takes no @{place[:60]}; those that name a runtime are {known}")
    label = f"{of.label} ({named_runtimes.words(place)})"
    return replace(of, name=f"{of.name}@{place}", label=label)


def _constraint(of: Quantity, bound: float | str) -> Constraint:
    if isinstance(bound, str):
        match = re.fullmatch(r"\s*(\S+?)\s*[xX]\s+(\S+)\s*", bound)
        if match:
            return Constraint(of.name, baseline=match[2], factor=_positive(of, match[1]))
    limit = _positive(of, bound)
    if of.name == "accuracy" and limit > 1:
        raise ValueError(f"accuracy: {limit:g} is above 1; accuracies are fractions, such as {limit / 100:g}")
    return Constraint(of.name, limit=limit)


def _positive(of: Quantity, text: float | str) -> float:
    try:
        number = math.nan if isinstance(text, bool) else float(text)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        shown = str(text)[:60]
        raise ValueError(
            f"{of.name}: {shown!r} is no bound; give a positive number, or text such as 1.5x resnet"
        )
    return number


def _number(constraint: Constraint, baselines: Mapping[str, Mapping[str, float]]) -> float:
    if constraint.limit is not None:
        return constraint.limit
    assert constraint.baseline is not None
    assert constraint.factor is not None
    if constraint.baseline not in baselines:
        known = ", ".join(baselines) or "none"
        raise ValueError(f"{constraint.name}: unknown baseline {constraint.baseline!r}; known: {known}")
    value = baselines[constraint.baseline].get(constraint.name)
    if value is None or not (math.isfinite(value) and value > 0):
        raise ValueError(
            f"{constraint.name}: baseline {constraint.baseline!r} has {value}, which bounds nothing"
        )
    return constraint.factor * value


def _known() -> str:
    return ", ".join(QUANTITIES)
