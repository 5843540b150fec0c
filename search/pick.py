"""Which one model to take off a front, why, and what comes next. Pure.

Who qualifies has finished within the search's limits and keeps the bounds asked for; of those, the ones that no
other beats are compared. Costs are compared on a logarithmic scale: from 1 to 2 ms is as far as from 10 to 20.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from search import pareto
from search.named_runtimes import base_of
from search.objectives import QUANTITIES, Limit, Quantity

NUM_NEXT = 3


@dataclass(frozen=True)
class Option:
    """A model to choose. label: how it is called. values, intervals (95%): by quantity. chance: in words, where its
    accuracy is not told apart from guessing."""

    label: str
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    chance: str = ""


@dataclass(frozen=True)
class Wish:
    """What is asked for. bounds: beyond the search's limits. rule: `knee`, weights by objective, or None for what
    the bounds leave open: the best in the one objective without a bound, else the knee."""

    bounds: tuple[Limit, ...] = ()
    rule: Literal["knee"] | Mapping[str, float] | None = None


@dataclass(frozen=True)
class Picked:
    """chosen, following: positions among the options, the best of the rest first, at most NUM_NEXT of them.
    reason: one sentence."""

    chosen: int
    following: tuple[int, ...]
    reason: str


class NothingFits(ValueError):
    """No option keeps the bounds. The message names the bound and the closest option."""


def pick(
    options: Sequence[Option], objectives: Sequence[Quantity], wish: Wish, baselines: Sequence[Option] = ()
) -> Picked:
    """Chooses among finished candidates that keep the search's limits and have all objectives. What does no better than
    guessing is left out where there is better, and no bound on the accuracy was asked for.

    baselines: named in the reason where one keeps the bounds and beats what is chosen. Raises NothingFits.
    """
    fitting = [i for i, option in enumerate(options) if _misses(option, wish.bounds) <= 0]
    if not fitting:
        raise NothingFits(_nothing(options, wish.bounds))
    guessing = _guessing(options, fitting, wish.bounds)
    fitting = [i for i in fitting if i not in guessing]
    fitting.sort(key=lambda i: _cheapness(options[i], objectives))
    order, why = _order([options[i] for i in fitting], objectives, wish)
    ranked = [fitting[position] for position in order]
    chosen, rest = ranked[0], ranked[1:]
    remarks = [
        why,
        _left_out([options[i] for i in guessing]),
        f"its accuracy is {options[chosen].chance}" if options[chosen].chance else "",
        _overlap(options[chosen], options[rest[0]], objectives) if rest else "",
        _off_the_front(options[chosen], options, objectives),
        *(
            _beaten(options[chosen], baseline, objectives)
            for baseline in baselines
            if _misses(baseline, wish.bounds) <= 0
        ),
    ]
    return Picked(chosen, tuple(rest[:NUM_NEXT]), "; ".join(remark for remark in remarks if remark))


def _guessing(options: Sequence[Option], fitting: Sequence[int], bounds: Sequence[Limit]) -> list[int]:
    """Positions to leave out; none where nothing else would be left."""
    found = [i for i in fitting if options[i].chance]
    asked = any(bound.name == "accuracy" for bound in bounds)
    return [] if asked or len(found) == len(fitting) else found


def _left_out(options: Sequence[Option]) -> str:
    if not options:
        return ""
    if len(options) == 1:
        return f"{options[0].label} is left out, since its accuracy is {options[0].chance}"
    which = ", ".join(option.label for option in options)
    return f"left out are {which}, since their accuracies are {options[0].chance}"


def contradiction(bounds: Sequence[Limit]) -> tuple[Limit, Limit] | None:
    """An upper and a lower bound of one quantity that no value keeps both, if there are such."""
    for upper in bounds:
        for lower in bounds:
            if upper.name == lower.name and upper.upper and not lower.upper and lower.value > upper.value:
                return upper, lower
    return None


def describe(bound: Limit) -> str:
    """`latency_ms at most 2`."""
    return f"{bound.name} {'at most' if bound.upper else 'at least'} {bound.value:.4g}"


def _cheapness(option: Option, objectives: Sequence[Quantity]) -> float:
    """The order of what is otherwise equal: cheapest first, best first where no cost is traded."""
    by = next((quantity for quantity in objectives if quantity.kind == "cost"), objectives[0])
    return -option.values[by.name] if by.maximise else option.values[by.name]


def _order(options: Sequence[Option], objectives: Sequence[Quantity], wish: Wish) -> tuple[list[int], str]:
    """Positions of the front of `options`, the best first, and why it is that."""
    maximise = [quantity.maximise for quantity in objectives]
    bounded = {bound.name for bound in wish.bounds}
    open_ones = [quantity for quantity in objectives if quantity.name not in bounded]
    plain = [[option.values[quantity.name] for quantity in objectives] for option in options]
    front = [i for i, best in enumerate(pareto.non_dominated(plain, maximise)) if best]
    values = _comparable([options[i] for i in front], objectives)
    among = _among(len(front), wish.bounds)
    if isinstance(wish.rule, Mapping):
        weights = [wish.rule.get(quantity.name, 0.0) for quantity in objectives]
        return _all_of(front, pareto.by_weight(values, maximise, weights)), _by_weight(wish.rule, among)
    if len(front) == 1:
        return front, f"{among}, so there is no choice"
    if wish.rule is None and (len(objectives) == 1 or (wish.bounds and len(open_ones) == 1)):
        by = objectives[0] if len(objectives) == 1 else open_ones[0]
        sign = -1 if by.maximise else 1
        order = sorted(front, key=lambda i: (sign * options[i].values[by.name], plain[i]))
        return order, f"{'highest' if by.maximise else 'lowest'} {by.name} of {among}"
    order = pareto.by_bend(values, maximise)
    return _all_of(front, order), _by_bend(order[0], values, objectives, among)


def _all_of(front: Sequence[int], order: Sequence[int]) -> list[int]:
    """The front in an order of its positions; one that the rounding of logarithms made seem beaten comes last."""
    first = [front[position] for position in order]
    return first + [index for index in front if index not in first]


def _by_weight(weights: Mapping[str, float], among: str) -> str:
    parts = ", ".join(f"{name} x {weight:g}" for name, weight in weights.items())
    return (
        f"nearest to the ideal of {among}, by the largest of {parts} (each from 0, the best there, to 1, the worst; "
        "costs on a logarithmic scale)"
    )


def _by_bend(
    chosen: int, values: Sequence[Sequence[float]], objectives: Sequence[Quantity], among: str
) -> str:
    columns = list(zip(*values, strict=True))
    if len(columns) == 2 and all(x in (min(c), max(c)) for x, c in zip(values[chosen], columns, strict=True)):
        at = zip(objectives, values[chosen], columns, strict=True)
        best = [q.name for q, x, column in at if x == (max(column) if q.maximise else min(column))]
        return (
            f"the end with the best {' and '.join(best)} of {among}: they bend nowhere towards the ideal, so none in "
            "between stands out; a bound or weights say which end you want"
        )
    plane = "line through the ends" if len(columns) == 2 else "plane through the ends"
    return f"knee of {among}: farthest from the {plane} towards the ideal (costs on a logarithmic scale)"


def _among(count: int, bounds: Sequence[Limit]) -> str:
    kept = f" with {' and '.join(map(describe, bounds))}" if bounds else ""
    if count == 1:
        return f"the only candidate{kept} that no other beats"
    return f"the {count} candidates{kept} that no other beats"


def _comparable(options: Sequence[Option], objectives: Sequence[Quantity]) -> list[list[float]]:
    """One row an option; costs as logarithms where they are all positive, which orders them the same."""
    columns = []
    for quantity in objectives:
        column = [option.values[quantity.name] for option in options]
        is_scale = quantity.kind == "cost" and all(value > 0 for value in column)
        columns.append([math.log(value) for value in column] if is_scale else column)
    return [list(row) for row in zip(*columns, strict=True)]


def _overlap(chosen: Option, other: Option, objectives: Sequence[Quantity]) -> str:
    names = [
        quantity.name
        for quantity in objectives
        if quantity.name in chosen.intervals
        and quantity.name in other.intervals
        and _overlapping(chosen.intervals[quantity.name], other.intervals[quantity.name])
    ]
    if not names:
        return ""
    return (
        f"its 95% interval of {' and of '.join(names)} overlaps that of {other.label}, the next one, so the two are "
        f"not told apart by {'it' if len(names) == 1 else 'them'}"
    )


def _overlapping(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _off_the_front(chosen: Option, options: Sequence[Option], objectives: Sequence[Quantity]) -> str:
    better = [option.label for option in options if _beats(option, chosen, objectives)]
    return f"{better[0]} beats it in the objectives, but breaks the bounds" if better else ""


def _beaten(chosen: Option, baseline: Option, objectives: Sequence[Quantity]) -> str:
    if not _beats(baseline, chosen, objectives):
        return ""
    return f"the baseline {baseline.label} is at least as good in every objective, and better in one"


def _beats(a: Option, b: Option, objectives: Sequence[Quantity]) -> bool:
    """Whether `a` is nowhere worse and somewhere better; never when it lacks an objective."""
    if any(quantity.name not in a.values for quantity in objectives):
        return False
    pairs = [
        (a.values[q.name], b.values[q.name]) if q.maximise else (b.values[q.name], a.values[q.name])
        for q in objectives
    ]
    return all(x >= y for x, y in pairs) and any(x > y for x, y in pairs)


def _misses(option: Option, bounds: Sequence[Limit]) -> float:
    """By what share of a bound the option breaks the worst one; 0 or less when it keeps all, inf without a value."""
    shares = [_violation(option, bound) for bound in bounds]
    return max(shares, default=0.0)


def _violation(option: Option, bound: Limit) -> float:
    value = option.values.get(bound.name)
    return math.inf if value is None else bound.violation(value)


def _nothing(options: Sequence[Option], bounds: Sequence[Limit]) -> str:
    if not options:
        return "no candidate has finished within the limits of the search yet"
    unmet = [bound for bound in bounds if all(_violation(option, bound) > 0 for option in options)]
    blamed = " or ".join(map(describe, unmet)) if unmet else "all of " + ", ".join(map(describe, bounds))
    closest = min(options, key=lambda option: _misses(option, bounds))
    figures = ", ".join(
        f"{name} {closest.values[name]:.4g}" if name in closest.values else f"{name} unknown"
        for name in dict.fromkeys(bound.name for bound in bounds)
    )
    return f"no finished candidate has {blamed}; the closest is {closest.label} with {figures}"


def known_weights(weights: Mapping[str, float], objectives: Sequence[Quantity]) -> Mapping[str, float]:
    """`weights` themselves. Raises ValueError unless they are of objectives, not negative, and one is positive."""
    names = [quantity.name for quantity in objectives]
    for name, weight in weights.items():
        if name not in names:
            what = "no objective of this search" if base_of(name) in QUANTITIES else "an unknown quantity"
            raise ValueError(f"{name[:60]!r} is {what}; its objectives: {', '.join(names)}")
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"{name}: {weight:g} is no weight; give 0 or more")
    if not any(weights.values()):
        raise ValueError("no weight is above 0")
    return weights
