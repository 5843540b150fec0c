"""A space: every legal point of some families for one task, ready to count, draw, vary and build."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from spaces.dims import Choice, Dimension, Point, SpaceError, Value
from spaces.points import FamilySpace, Values
from spaces.spec import ArchSpec, Task

FAMILY = "family"


class Space:
    """Points of several families. A point holds `family` and the active dimensions of that family, nothing else:
    {"family": "vit", "vit.patch_size": 4, "vit.depth": 3, ...}.

    dimensions: `family` first, then each family's in the order in which they are to be asked; a dimension is asked
    when its conditions hold. A point asked that way may still break a rule: see `illegal`.
    """

    def __init__(self, task: Task, members: Mapping[str, FamilySpace]) -> None:
        self.task = task
        self.families = tuple(members)
        self._members = dict(members)
        self.dimensions = tuple(self._dimensions())
        self._by_name = {dimension.name: dimension for dimension in self.dimensions}

    def size(self) -> int:
        """Number of legal points."""
        return sum(member.size for member in self._members.values())

    def raw_size(self) -> int:
        """Number of points before rules select the legal ones."""
        return sum(member.raw_size for member in self._members.values())

    def sample(self, rng: random.Random, family: str | None = None) -> Point:
        """A legal point of a family; None: of one that is drawn uniformly first."""
        family = rng.choice(self.families) if family is None else family
        return _point(family, self._members[family].sample(rng))

    def illegal(self, point: Mapping[str, Value]) -> str | None:
        """Why this is no point of the space, or None where it is one."""
        for dimension in self.dimensions:
            if not dimension.active(point):
                if dimension.name in point:
                    return f"{dimension.name}: not a dimension of this point"
            elif dimension.name not in point:
                return f"{dimension.name}: missing; legal: {dimension.domain}"
            elif point[dimension.name] not in dimension.domain:
                value = point[dimension.name]
                return f"{dimension.name}: {value!r} is not legal; legal: {dimension.domain}"
        for name in point:
            if name not in self._by_name:
                return f"{name}: no such dimension"
        member, values = self._split(point)
        reason = member.broken_rule(values)
        return None if reason is None else f"{member.family.name}: {reason}"

    def spec(self, point: Mapping[str, Value]) -> ArchSpec:
        """The network of a point. Raises SpaceError with the reason when the point is illegal."""
        reason = self.illegal(point)
        if reason is not None:
            raise SpaceError(reason)
        member, values = self._split(point)
        return member.family.spec(self.task, values)

    def neighbours(self, point: Mapping[str, Value]) -> list[Point]:
        """Legal points of the same family that differ by one step in one dimension: the values beside it in order,
        or any other word. Where that alone is illegal, what the rules link follows as little as it can. The order
        is fixed. Raises SpaceError when the point is illegal."""
        self._check(point)
        member, values = self._split(point)
        found: dict[tuple[tuple[str, Value], ...], Point] = {}
        for dimension in member.dimensions:
            if dimension.name in values:
                for value in _beside(dimension, values[dimension.name]):
                    near = member.nearest(values, {dimension.name: value})
                    if near is not None and near != values:
                        found[tuple(near.items())] = _point(member.family.name, near)
        return list(found.values())

    def crossover(self, a: Mapping[str, Value], b: Mapping[str, Value], rng: random.Random) -> Point:
        """A legal point whose family is that of one parent, drawn, and each of whose dimensions is drawn from
        either; parents of different families share the dimensions that have the same name in both. What rules
        link is mended towards the draw. Raises SpaceError when a parent is illegal."""
        self._check(a)
        self._check(b)
        if rng.random() < 0.5:
            a, b = b, a
        member, values = self._split(a)
        other = self._split(b)[1]
        drawn: Values = {}
        for dimension in member.dimensions:
            name = dimension.name
            choices = [parent[name] for parent in (values, other) if parent.get(name) in dimension.domain]
            if choices:
                drawn[name] = rng.choice(choices)
        near = member.nearest(drawn, {})
        assert near is not None
        return _point(member.family.name, near)

    def distance(self, a: Mapping[str, Value], b: Mapping[str, Value]) -> float:
        """0 for the same point, 1 for another family; else the mean over the dimensions that are active in either of
        how far they are apart (1: the two ends, another word, or active in one only)."""
        if a[FAMILY] != b[FAMILY]:
            return 1.0
        member, one = self._split(a)
        other = self._split(b)[1]
        shared = {key: value for key, value in one.items() if key in other}
        only = len(one) + len(other) - 2 * len(shared)
        return (member.gap(shared, other) + only) / max(1, len(shared) + only)

    def _check(self, point: Mapping[str, Value]) -> None:
        reason = self.illegal(point)
        if reason is not None:
            raise SpaceError(reason)

    def _split(self, point: Mapping[str, Value]) -> tuple[FamilySpace, Values]:
        """The family's space and the values under the family's own names."""
        family = str(point[FAMILY])
        start = len(family) + 1
        return self._members[family], {name[start:]: value for name, value in point.items() if name != FAMILY}

    def _dimensions(self) -> Iterator[Dimension]:
        yield Dimension(FAMILY, Choice(self.families))
        for family, member in self._members.items():
            for dimension in member.dimensions:
                own = tuple((f"{family}.{name}", allowed) for name, allowed in dimension.when)
                yield Dimension(f"{family}.{dimension.name}", dimension.domain, ((FAMILY, (family,)), *own))


def _point(family: str, values: Values) -> Point:
    return {FAMILY: family, **{f"{family}.{key}": value for key, value in values.items()}}


def _beside(dimension: Dimension, value: Value) -> list[Value]:
    domain = dimension.domain
    ordered = sorted(domain.values, key=float) if domain.ordered else list(domain.values)
    position = ordered.index(value)
    if not domain.ordered:
        return [other for other in ordered if other != value]
    return [ordered[index] for index in (position - 1, position + 1) if 0 <= index < len(ordered)]
