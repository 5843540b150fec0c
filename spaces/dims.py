"""Search dimensions as data: what a name may be, and when it counts.

A domain is a finite, ordered set of values: `Choice`, `IntRange` or `FloatRange`. A `Dimension` gives a domain a
name and says when it is active. A `Rule` selects combinations of values; it never narrows a domain, so that one
name has one distribution in a study.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from spaces.spec import ArchSpec, Task

Value = str | int | float | bool
Point = dict[str, Value]
Condition = tuple[str, tuple[Value, ...]]


class SpaceError(ValueError):
    """A space, an override or a point that cannot be: the message names the key, the value and what is legal."""


def as_written(value: object) -> str:
    """A value as YAML has it: `true` for True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Choice:
    """One of `values`. Numbers are taken as ordered by their position, words as unordered."""

    values: tuple[Value, ...]

    @property
    def ordered(self) -> bool:
        return not any(isinstance(value, str | bool) for value in self.values)

    def __contains__(self, value: object) -> bool:
        return any(type(own) is type(value) and own == value for own in self.values)

    def __str__(self) -> str:
        return ", ".join(map(as_written, self.values))


@dataclass(frozen=True)
class IntRange:
    """Whole numbers low, low + step, ... up to `high`, which is itself a value."""

    low: int
    high: int
    step: int = 1

    @cached_property
    def values(self) -> tuple[int, ...]:
        return tuple(range(self.low, self.high + 1, self.step))

    @property
    def ordered(self) -> bool:
        return True

    def __contains__(self, value: object) -> bool:
        return type(value) is int and self.low <= value <= self.high and (value - self.low) % self.step == 0

    def __str__(self) -> str:
        return f"{self.low} to {self.high}" + ("" if self.step == 1 else f" in steps of {self.step}")


@dataclass(frozen=True)
class FloatRange:
    """Numbers low, low + step, ... up to `high`, which is itself a value; rounded to 9 decimals."""

    low: float
    high: float
    step: float

    @cached_property
    def values(self) -> tuple[float, ...]:
        count = math.floor((self.high - self.low) / self.step + 1e-6) + 1
        return tuple(round(self.low + index * self.step, 9) for index in range(count))

    @property
    def ordered(self) -> bool:
        return True

    def __contains__(self, value: object) -> bool:
        return (
            type(value) is float and self.low <= value <= self.high and _whole((value - self.low) / self.step)
        )

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} in steps of {self.step:g}"


Domain = Choice | IntRange | FloatRange


@dataclass(frozen=True)
class Grid:
    """In a preset: those legal patch sizes that cut the image into `low` to `high` patches a side."""

    low: int
    high: int

    def of(self, legal: Domain, image_size: int) -> Choice:
        """The domain at an image size in pixels; may be empty."""
        return Choice(
            tuple(size for size in legal.values if self.low <= image_size // int(size) <= self.high)
        )


@dataclass(frozen=True)
class Dimension:
    """A named domain that counts when every condition (name, allowed values) holds."""

    name: str
    domain: Domain
    when: tuple[Condition, ...] = ()

    def active(self, point: Mapping[str, Value]) -> bool:
        """Whether a point with these values so far has this dimension."""
        return all(point.get(name) in allowed for name, allowed in self.when)

    def to_dict(self) -> dict[str, Any]:
        """JSON object: name, kind, and values or low, high and step; `when` as lists."""
        domain = self.domain
        kind = {Choice: "choice", IntRange: "int", FloatRange: "float"}[type(domain)]
        if isinstance(domain, Choice):
            extent: dict[str, Any] = {"values": list(domain.values)}
        else:
            extent = {"low": domain.low, "high": domain.high, "step": domain.step}
        return {
            "name": self.name,
            "kind": kind,
            **extent,
            "when": {name: list(allowed) for name, allowed in self.when},
        }


class Check(Protocol):
    """Why these values do not go together, or None where they do."""

    def __call__(self, values: Mapping[str, Any], /) -> str | None: ...


@dataclass(frozen=True)
class Rule:
    """Which combinations of the dimensions `keys` are legal; asked only when all of them are active."""

    keys: tuple[str, ...]
    check: Check


class Family(Protocol):
    """One kind of network. Names of dimensions are the family's own here (`depth`); a space prefixes them.

    name: the family's name. conditions: dimension -> (other dimension, values for which it is active).
    named: networks of the field that are points of this family, with all their values: by timm's entry point, or by a
    name of ours where timm has none. `image_size` is among the values where it is not 224 pixels.
    """

    @property
    def name(self) -> str: ...

    @property
    def conditions(self) -> Mapping[str, Condition]: ...

    @property
    def named(self) -> Mapping[str, Mapping[str, Value]]: ...

    def limits(self, task: Task) -> Mapping[str, Domain]:
        """Every dimension, in the order in which it is asked, with all values that are legal for the task."""
        ...

    def rules(self, task: Task) -> Sequence[Rule]:
        """What selects the legal combinations."""
        ...

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        """The network of a legal combination of values, in canonical form."""
        ...


def parse_override(key: str, raw: object, legal: Domain) -> Domain:
    """The domain that a user gave for `key`: one value, a list of values, or {low, high, step}.

    Raises SpaceError naming the key, the value and the legal values.
    """
    if isinstance(raw, Mapping):
        return _parse_range(key, raw, legal)
    values = list(raw) if isinstance(raw, list | tuple) else [raw]
    if not values:
        raise SpaceError(f"{key}: no values; legal: {legal}")
    parsed = tuple(_parse_value(key, value, legal) for value in values)
    seen: set[Value] = set()
    for value in parsed:
        if value in seen:
            raise SpaceError(f"{key}: {_shown(value)} is named twice; legal: {legal}, each once")
        seen.add(value)
    return Choice(parsed)


def _parse_range(key: str, raw: Mapping[Any, Any], legal: Domain) -> Domain:
    if isinstance(legal, Choice):
        raise SpaceError(f"{key}: give a list of values here; legal: {legal}")
    for name in raw:
        if name not in ("low", "high", "step"):
            raise SpaceError(f"{key}: {name!r} is none of low, high, step")
    for name in ("low", "high"):
        if name not in raw:
            raise SpaceError(f"{key}: a range needs low and high; {name} is missing")
    low = _parse_value(f"{key}.low", raw["low"], legal)
    high = _parse_value(f"{key}.high", raw["high"], legal)
    assert not isinstance(low, str)
    assert not isinstance(high, str)
    if low > high:
        raise SpaceError(f"{key}: low {low} is above high {high}")
    step = raw.get("step", legal.step)
    if isinstance(step, bool) or not isinstance(step, int | float) or not _multiple(step, legal.step):
        raise SpaceError(
            f"{key}: step {_shown(step)} is not a positive multiple of {legal.step}; legal: {legal}"
        )
    if isinstance(legal, IntRange):
        low, step = int(low), int(step)
        return IntRange(low, low + (int(high) - low) // step * step, step)
    fitted = FloatRange(float(low), float(high), float(step))
    return FloatRange(fitted.low, fitted.values[-1], fitted.step)


def _parse_value(key: str, value: object, legal: Domain) -> Value:
    if isinstance(legal, FloatRange) and type(value) is int:
        value = float(value)
    if value not in legal:
        raise SpaceError(f"{key}: {_shown(value)} is not legal; legal: {legal}")
    assert isinstance(value, str | int | float)
    return value


def _multiple(step: float, unit: float) -> bool:
    return math.isfinite(step) and step > 0 and _whole(step / unit)


def _whole(ratio: float) -> bool:
    return abs(ratio - round(ratio)) < 1e-6


def _shown(value: object) -> str:
    text = as_written(value) if isinstance(value, bool) else "null" if value is None else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
