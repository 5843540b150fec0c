"""Fronts: who is dominated, by how many layers, how much a front covers, where it bends. Pure.

Values are rows of finite numbers, one a candidate, one column an objective; `maximise` says which columns
are better when higher. A row dominates another when it is nowhere worse and somewhere better, so equal rows
are all kept. Few rows are compared here; moocore, whose import takes 0.4 s, takes over for many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

FEW = 500
Rows = Sequence[Sequence[float]]


def non_dominated(values: Rows, maximise: Sequence[bool]) -> list[bool]:
    """For each row, whether no other dominates it. Raises ValueError for a value that is not finite."""
    costs = _costs(values, maximise)
    if len(costs) > FEW:
        import moocore

        return [bool(kept) for kept in moocore.is_nondominated(_array(costs), keep_weakly=True)]
    front = set(_first_layer(costs, range(len(costs))))
    return [index in front for index in range(len(costs))]


def ranks(values: Rows, maximise: Sequence[bool]) -> list[int]:
    """For each row, the layer it is in: 0 for the front, 1 for the front of the rest, and so on.

    Non-dominated sorting of Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II"
    (2002).
    """
    costs = _costs(values, maximise)
    if len(costs) > FEW:
        import moocore

        return [int(rank) for rank in moocore.pareto_rank(_array(costs))]
    found = [0] * len(costs)
    left = list(range(len(costs)))
    layer = 0
    while left:
        front = set(_first_layer(costs, left))
        for index in front:
            found[index] = layer
        left = [index for index in left if index not in front]
        layer += 1
    return found


def hypervolume(values: Rows, maximise: Sequence[bool], reference: Sequence[float]) -> float:
    """Volume dominated by the rows and bounded by `reference`, a row worse than those of interest.

    Zitzler and Thiele (1998). Rows that are not better than the reference everywhere add nothing; none, 0.
    """
    (corner,) = _costs([reference], maximise)
    costs = [row for row in _costs(values, maximise) if all(x < r for x, r in zip(row, corner, strict=True))]
    if not costs:
        return 0.0
    if len(corner) == 1:
        return corner[0] - min(costs)[0]
    import moocore

    return float(moocore.hypervolume(_array(costs), ref=corner))


def knee(values: Rows, maximise: Sequence[bool]) -> int | None:
    """Index of the row where the front bends most, the first of `by_bend`; None without rows."""
    return next(iter(by_bend(values, maximise)), None)


def by_bend(values: Rows, maximise: Sequence[bool]) -> list[int]:
    """Indices of the front's rows, the one first where the front bends most.

    Each objective scaled to 0 (best) .. 1 (worst) on the front, rows are ordered by how far they lie towards the
    ideal from the plane through the unit points, which for two objectives is the line through the front's ends: Das,
    "On characterizing the 'knee' of the Pareto curve based on normal-boundary intersection" (1999). Equals stay in
    their order; a front that bends nowhere towards the ideal begins with one of its ends.
    """
    costs = _costs(values, maximise)
    front = sorted(_first_layer(costs, range(len(costs))))
    scaled = dict(zip(front, _scaled([costs[index] for index in front]), strict=True))
    return sorted(front, key=lambda index: sum(scaled[index]))


def by_weight(values: Rows, maximise: Sequence[bool], weights: Sequence[float]) -> list[int]:
    """Indices of the front's rows by their weighted Chebyshev distance from the ideal, the nearest first.

    Each objective scaled to 0 (best) .. 1 (worst) on the front, the distance is the largest of weight x objective;
    of equals the one with the smaller weighted sum comes first, which is what the augmented distance of Steuer and
    Choo (1983) is for. Unlike a weighted sum it reaches every point of a front, convex or not.
    """
    costs = _costs(values, maximise)
    front = sorted(_first_layer(costs, range(len(costs))))
    scaled = dict(zip(front, _scaled([costs[index] for index in front]), strict=True))

    def distance(index: int) -> tuple[float, float]:
        parts = [weight * x for weight, x in zip(weights, scaled[index], strict=True)]
        return max(parts), sum(parts)

    return sorted(front, key=distance)


def _scaled(costs: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Each column to 0 (lowest) .. 1 (highest); a column of equals to 0."""
    columns = list(zip(*costs, strict=True))
    scales = [(min(column), (max(column) - min(column)) or 1.0) for column in columns]
    return [tuple((x - low) / width for x, (low, width) in zip(row, scales, strict=True)) for row in costs]


def _first_layer(costs: list[tuple[float, ...]], among: Sequence[int]) -> list[int]:
    """In lexicographic order a row can only be dominated by one before it, and then by one of the front."""
    front: list[int] = []
    for index in sorted(among, key=lambda i: costs[i]):
        row = costs[index]
        if not any(_dominates(costs[other], row) for other in front):
            front.append(index)
    return front


def _dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def _costs(values: Rows, maximise: Sequence[bool]) -> list[tuple[float, ...]]:
    rows = [
        tuple(float(-value if high else value) for value, high in zip(row, maximise, strict=True))
        for row in values
    ]
    for row in rows:
        if not all(map(math.isfinite, row)):
            raise ValueError(f"{row} holds a value that is not finite")
    return rows


def _array(costs: list[tuple[float, ...]]) -> Any:
    import numpy as np

    return np.asarray(costs, dtype=np.float64)
