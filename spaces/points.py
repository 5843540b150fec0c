"""The legal points of one family for one task.

What the rules link is enumerated once: a family is a sum over branches (the values of the dimensions that switch
others on) of products over groups of linked dimensions. Drawing and varying then only ever put legal parts
together, and counting is a sum of products.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from spaces.dims import Choice, Dimension, Domain, Family, Rule, SpaceError, Value, as_written
from spaces.spec import Task

Values = dict[str, Value]

MAX_LINKED = 300_000
"""Combinations that are enumerated of dimensions that rules link: a few seconds and 100 MB."""

MAX_TRIED = 1_000_000
"""Combinations that are tried in all the branches of a family together."""

MAX_ASKED = 10_000
"""Combinations that are tried to find the reason of an error."""


@dataclass(frozen=True)
class Branch:
    """Points with the same switches: the product of `groups`, each a list of legal parts."""

    switches: Values
    groups: tuple[tuple[Values, ...], ...]

    @property
    def size(self) -> int:
        return math.prod(len(group) for group in self.groups)


class FamilySpace:
    """The legal points of one family; names are the family's own.

    domains: what each dimension may be. given: dimensions of which the user named the values, so that a value that
    no point can have is an error rather than left out. apart: dimensions of which every value is a branch, so that
    rules about it link nothing else. Raises SpaceError, naming the rule, when a value that was given or the whole
    family is impossible.
    """

    def __init__(
        self,
        family: Family,
        task: Task,
        domains: Mapping[str, Domain],
        given: frozenset[str],
        apart: frozenset[str] = frozenset(),
    ) -> None:
        self.family = family
        self.task = task
        self._rules = tuple(family.rules(task))
        self._apart = apart
        self._asked = dict(domains)
        self._domains = dict(domains)
        self._tried = 0
        for key, domain in domains.items():
            if not domain.values:
                raise SpaceError(f"{family.name}.{key}: nothing is legal for {task.image_size} px images")
        self.branches = tuple(branch for branch in self._branch() if branch.size)
        seen: dict[str, set[Value]] = {key: set() for key in domains}
        for branch in self.branches:
            for part in (branch.switches, *(part for group in branch.groups for part in group)):
                for key, value in part.items():
                    seen[key].add(value)
        self.dimensions = tuple(self._seen_dimensions(seen, given))
        self._rank = {key: _ranks(domain) for key, domain in self._domains.items()}

    @property
    def size(self) -> int:
        """Number of legal points."""
        return sum(branch.size for branch in self.branches)

    @property
    def raw_size(self) -> int:
        """Number of combinations before the rules: every value of every active dimension."""
        return sum(
            math.prod(len(self._domains[key].values) for key in self._active(switches) if key not in switches)
            for switches in self._switches()
        )

    def sample(self, rng: random.Random) -> Values:
        """A point: a branch, then a part of each group, each drawn uniformly."""
        branch = rng.choice(self.branches)
        values: Values = dict(branch.switches)
        for group in branch.groups:
            values.update(rng.choice(group))
        return self.in_order(values)

    def in_order(self, values: Mapping[str, Value]) -> Values:
        """The same values, in the order of the dimensions."""
        return {key: values[key] for key in self._domains if key in values}

    def broken_rule(self, values: Mapping[str, Value]) -> str | None:
        """The reason of the first rule that these values break."""
        for rule in self._rules:
            if all(key in values for key in rule.keys):
                reason = rule.check(values)
                if reason is not None:
                    return reason
        return None

    def nearest(self, wanted: Mapping[str, Value], fixed: Mapping[str, Value]) -> Values | None:
        """The point with the `fixed` values that is closest to `wanted`, or None where no point has them."""
        best: tuple[float, int, Values] | None = None
        gaps = [self.gap(branch.switches, wanted) for branch in self.branches]
        for number in sorted(range(len(gaps)), key=gaps.__getitem__):
            # Branches after this one are at least as far away by their switches alone.
            if best is not None and gaps[number] > best[0] + 1e-9:
                break
            values = self._nearest_in(self.branches[number], wanted, fixed)
            if values is not None:
                here = (self.gap(values, wanted), number, values)
                best = here if best is None else min(best, here)
        return None if best is None else best[2]

    def _nearest_in(
        self, branch: Branch, wanted: Mapping[str, Value], fixed: Mapping[str, Value]
    ) -> Values | None:
        values: Values = dict(branch.switches)
        for group in branch.groups:
            # What is wanted is most often legal as it stands, and long groups need no search then.
            given = {**wanted, **fixed}
            asked = {key: given[key] for key in group[0] if key in given}
            parts = [asked] if asked in group else [p for p in group if _has(p, fixed)]
            if not parts:
                return None
            values.update(min(parts, key=lambda part: self.gap(part, wanted)))
        return self.in_order(values) if all(values.get(key) == fixed[key] for key in fixed) else None

    def gap(self, one: Mapping[str, Value], other: Mapping[str, Value]) -> float:
        """Sum over the dimensions of `one` of how far `other` is: 0 the same, 1 the two ends or another word."""
        return sum(self._gap(key, value, other.get(key)) for key, value in one.items())

    def _gap(self, key: str, value: Value, other: Value | None) -> float:
        domain = self._domains[key]
        if value == other:
            return 0.0
        if not domain.ordered or len(domain.values) < 2:
            return 1.0
        index = self._rank[key]
        return abs(index[value] - index.get(other, 0)) / (len(index) - 1)

    def _switches(self) -> Iterator[Values]:
        """Every setting of the dimensions that switch others on or off, and of those apart."""
        parents = {parent for key, (parent, _) in self.family.conditions.items() if key in self._domains}
        parents |= self._apart
        keys = [key for key in self._domains if key in parents]
        if math.prod(len(self._domains[key].values) for key in keys) > MAX_LINKED:
            raise self._too_many(keys, MAX_LINKED)
        settings: dict[tuple[tuple[str, Value], ...], Values] = {}
        for combination in product(*(self._domains[key].values for key in keys)):
            values: Values = {}
            for key, value in zip(keys, combination, strict=True):
                if self._is_on(key, values):
                    values[key] = value
            settings[tuple(values.items())] = values
        return iter(settings.values())

    def _is_on(self, key: str, values: Mapping[str, Value]) -> bool:
        condition = self.family.conditions.get(key)
        return condition is None or values.get(condition[0]) in condition[1]

    def _active(self, switches: Mapping[str, Value]) -> list[str]:
        return [key for key in self._domains if self._is_on(key, switches)]

    def _branch(self) -> Iterator[Branch]:
        for switches in self._switches():
            active = self._active(switches)
            rules = [rule for rule in self._rules if all(key in active for key in rule.keys)]
            free = [key for key in active if key not in switches]
            if any(rule.check(switches) for rule in rules if all(key in switches for key in rule.keys)):
                continue
            groups = tuple(tuple(self._legal_parts(keys, switches, rules)) for keys in _linked(free, rules))
            yield Branch(switches, groups)

    def _legal_parts(self, keys: list[str], switches: Values, rules: list[Rule]) -> list[Values]:
        """Grown key by key, so that what a rule excludes is not combined with all that follows."""
        parts: list[Values] = [{}]
        known = set(switches)
        for key in keys:
            count = len(parts) * len(self._domains[key].values)
            self._tried += count
            if count > MAX_LINKED:
                raise self._too_many(keys, MAX_LINKED)
            if self._tried > MAX_TRIED:
                raise self._too_many([*switches, *keys], MAX_TRIED)
            known.add(key)
            due = [rule for rule in rules if key in rule.keys and known.issuperset(rule.keys)]
            grown = ({**part, key: value} for part in parts for value in self._domains[key].values)
            parts = [part for part in grown if not any(rule.check({**switches, **part}) for rule in due)]
        return parts

    def _too_many(self, keys: list[str], count: int) -> SpaceError:
        return SpaceError(
            f"{self.family.name}: {', '.join(keys)} are linked by rules or conditions, and have more than {count:,} "
            "combinations: name fewer values of some of them"
        )

    def _seen_dimensions(self, seen: Mapping[str, set[Value]], given: frozenset[str]) -> Iterator[Dimension]:
        if not self.branches:
            reason = self._why({}) or "no combination of values is legal"
            raise SpaceError(
                f"{self.family.name}: no legal point for {self.task.image_size} px images: {reason}"
            )
        for key, domain in self._domains.items():
            lost = [value for value in domain.values if value not in seen[key]]
            if lost and key in given and seen[key]:
                kept = ", ".join(str(value) for value in domain.values if value in seen[key])
                reason = self._why({key: lost[0]})
                raise SpaceError(f"{self.family.name}.{key}: {lost[0]} is not legal: {reason}; legal: {kept}")
            if lost and key in given:
                reason = self._why({key: lost[0]}) if self._can_be_on(key) else None
                why = (
                    f"has no effect: {self._needs(key)}"
                    if reason is None
                    else f"{lost[0]} is not legal: {reason}"
                )
                raise SpaceError(f"{self.family.name}.{key}: {why}")
            if seen[key]:
                kept_domain = Choice(tuple(v for v in domain.values if v in seen[key])) if lost else domain
                self._domains[key] = kept_domain
                yield Dimension(key, kept_domain, self._condition(key))
        for key in [key for key in self._domains if not seen[key]]:
            del self._domains[key]

    def _condition(self, key: str) -> tuple[tuple[str, tuple[Value, ...]], ...]:
        condition = self.family.conditions.get(key)
        if condition is None:
            return ()
        parent, allowed = condition
        kept = tuple(value for value in self._domains[parent].values if value in allowed)
        # What every value of the parent allows is there whenever the parent is.
        return ((parent, kept),) if len(kept) < len(self._domains[parent].values) else self._condition(parent)

    def _can_be_on(self, key: str) -> bool:
        """Whether the dimension that switches this one has a value for it."""
        parent, allowed = self.family.conditions[key]
        return parent in self._asked and any(value in allowed for value in self._asked[parent].values)

    def _needs(self, key: str) -> str:
        parent, allowed = self.family.conditions[key]
        return f"it needs {parent} to be {' or '.join(map(as_written, allowed))}"

    def _why(self, fixed: Mapping[str, Value]) -> str | None:
        """The reason of the rule that excludes the most combinations with these values."""
        found: list[tuple[float, str]] = []
        for rule in self._rules:
            if (fixed and not any(key in rule.keys for key in fixed)) or not self._domains.keys() >= set(
                rule.keys
            ):
                continue
            domains = [(fixed[key],) if key in fixed else self._domains[key].values for key in rule.keys]
            combinations = [dict(zip(rule.keys, combination, strict=True)) for combination in _some(domains)]
            reasons = [reason for values in combinations if (reason := rule.check(values)) is not None]
            if reasons:
                found.append((len(reasons) / len(combinations), reasons[0]))
        return max(found, key=lambda pair: pair[0])[1] if found else None


def _some(domains: list[tuple[Value, ...]]) -> Iterator[tuple[Value, ...]]:
    """All combinations of values, or as many that are drawn where they are too many to ask about each."""
    if math.prod(len(values) for values in domains) <= MAX_ASKED:
        return product(*domains)
    rng = random.Random(0)
    return (tuple(rng.choice(values) for values in domains) for _ in range(MAX_ASKED))


def _has(part: Values, fixed: Mapping[str, Value]) -> bool:
    """Whether the part has those of the fixed values that are its dimensions'."""
    return all(part.get(key, value) == value for key, value in fixed.items())


def _ranks(domain: Domain) -> dict[Value | None, int]:
    values = sorted(domain.values, key=float) if domain.ordered else domain.values
    return {value: rank for rank, value in enumerate(values)}


def _linked(keys: list[str], rules: list[Rule]) -> list[list[str]]:
    """Groups of keys that rules link, in the order of the keys."""
    label = {key: index for index, key in enumerate(keys)}
    for rule in rules:
        joined = {label[key] for key in rule.keys if key in label}
        label = {key: min(joined) if value in joined else value for key, value in label.items()}
    return [[key for key in keys if label[key] == value] for value in sorted(set(label.values()))]
