"""A family whose networks may be built for images of several sizes: `image_size` as a dimension of any family.

Images are brought to the size of a candidate as it is trained; their own size stays what the data say. What is legal
may differ from size to size (patches divide an image): a dimension then has every value that some size allows, and a
rule says which go together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spaces.dims import Choice, Domain, Family, Grid, IntRange, Rule, SpaceError, Value
from spaces.spec import ArchSpec, Task

IMAGE_SIZE = "image_size"
LEGAL_SIZES = IntRange(4, 1024)
MAX_SIZES = 64


class Sized:
    """The dimensions of a family after `image_size`, which is one of `sizes`, sides in pixels.

    grids: dimensions of which each size has its own values, those that cut it into so many patches a side.
    """

    def __init__(self, family: Family, sizes: Sequence[int], grids: Mapping[str, Grid]) -> None:
        self.name = family.name
        self.conditions = family.conditions
        self.named: Mapping[str, Mapping[str, Value]] = {}
        self.family = family
        self.sizes = tuple(sizes)
        self._grids = grids

    def limits(self, task: Task) -> dict[str, Domain]:
        by_size = [self._at(task, size) for size in self.sizes]
        for size, limits in zip(self.sizes, by_size, strict=True):
            if list(limits) != list(by_size[0]):
                raise self._differs("limits", size)
        joined = {key: _union([limits[key] for limits in by_size]) for key in by_size[0]}
        return {IMAGE_SIZE: LEGAL_SIZES, **joined}

    def rules(self, task: Task) -> Sequence[Rule]:
        rules = {size: self.family.rules(replace(task, image_size=size)) for size in self.sizes}
        for size, found in rules.items():
            if [rule.keys for rule in found] != [rule.keys for rule in rules[self.sizes[0]]]:
                raise self._differs("rules", size)
        own = [
            Rule((IMAGE_SIZE, *same[0].keys), _checked(dict(zip(rules, same, strict=True))))
            for same in zip(*rules.values(), strict=True)
        ]
        by_size = {size: self._at(task, size) for size in self.sizes}
        differing = [
            key for key in by_size[self.sizes[0]] if len({limits[key] for limits in by_size.values()}) > 1
        ]
        return [*(Rule((IMAGE_SIZE, key), _allowed(key, by_size)) for key in differing), *own]

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        rest = {key: value for key, value in values.items() if key != IMAGE_SIZE}
        return self.family.spec(replace(task, image_size=values[IMAGE_SIZE]), rest)

    def _at(self, task: Task, size: int) -> dict[str, Domain]:
        limits = dict(self.family.limits(replace(task, image_size=size)))
        return limits | {key: grid.of(limits[key], size) for key, grid in self._grids.items()}

    def _differs(self, what: str, size: int) -> SpaceError:
        return SpaceError(
            f"{self.name}: its {what} at {size} px are about other dimensions than at {self.sizes[0]} px, so that "
            "image_size cannot be one of them"
        )


def _checked(rules: Mapping[int, Rule]) -> Any:
    """The check of a rule, given for each image size, at the image size of the values."""

    def check(values: Mapping[str, Any]) -> str | None:
        reason = rules[values[IMAGE_SIZE]].check(values)
        return None if reason is None else f"at {values[IMAGE_SIZE]} px, {reason}"

    return check


def _union(domains: Sequence[Domain]) -> Domain:
    if len(set(domains)) == 1:
        return domains[0]
    values = dict.fromkeys(value for domain in domains for value in domain.values)
    is_ordered = all(domain.ordered for domain in domains)
    return Choice(tuple(sorted(values, key=float) if is_ordered else values))


def _allowed(key: str, by_size: Mapping[int, Mapping[str, Domain]]) -> Any:
    """A check of one dimension against what the image size allows."""

    def check(values: Mapping[str, Any]) -> str | None:
        legal = by_size[values[IMAGE_SIZE]][key]
        if values[key] in legal:
            return None
        return f"{key} {values[key]} is not legal at {values[IMAGE_SIZE]} px; legal: {legal}"

    return check
