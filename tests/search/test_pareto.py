"""Fronts against their definitions, spelled out."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search import pareto

NUMBERS = st.integers(-4, 4).map(float)  # few, so that ties and duplicates are common


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[float]], list[bool]]:
    width = draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(NUMBERS, min_size=width, max_size=width), max_size=12))
    return rows, draw(st.lists(st.booleans(), min_size=width, max_size=width))


def dominates(a: list[float], b: list[float], maximise: list[bool]) -> bool:
    better = [x > y if high else x < y for x, y, high in zip(a, b, maximise, strict=True)]
    worse = [x < y if high else x > y for x, y, high in zip(a, b, maximise, strict=True)]
    return any(better) and not any(worse)


def brute_front(rows: list[list[float]], maximise: list[bool]) -> list[bool]:
    return [not any(dominates(other, row, maximise) for other in rows) for row in rows]


def brute_ranks(rows: list[list[float]], maximise: list[bool]) -> list[int]:
    found = [-1] * len(rows)
    layer = 0
    while left := [i for i, rank in enumerate(found) if rank < 0]:
        kept = brute_front([rows[i] for i in left], maximise)
        for i, best in zip(left, kept, strict=True):
            found[i] = layer if best else -1
        layer += 1
    return found


def brute_volume(rows: list[list[float]], maximise: list[bool], reference: list[float]) -> float:
    """Counts the unit cells between -4 and the reference, on integer coordinates."""
    signs = [-1 if high else 1 for high in maximise]
    costs = [[sign * value for sign, value in zip(signs, row, strict=True)] for row in rows]
    corner = [sign * value for sign, value in zip(signs, reference, strict=True)]
    cells = itertools.product(*(range(-4, int(limit)) for limit in corner))
    return sum(any(all(x <= c for x, c in zip(row, cell, strict=True)) for row in costs) for cell in cells)


@settings(deadline=None, max_examples=60)
@given(tables())
@pytest.mark.parametrize("few", [pareto.FEW, 0])
def test_the_front_holds_what_nothing_dominates_duplicates_kept(
    few: int, table: tuple[list[list[float]], list[bool]]
) -> None:
    rows, maximise = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pareto, "FEW", few)
        assert pareto.non_dominated(rows, maximise) == brute_front(rows, maximise)


@settings(deadline=None, max_examples=60)
@given(tables())
@pytest.mark.parametrize("few", [pareto.FEW, 0])
def test_ranks_peel_one_front_after_another(few: int, table: tuple[list[list[float]], list[bool]]) -> None:
    rows, maximise = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pareto, "FEW", few)
        assert pareto.ranks(rows, maximise) == brute_ranks(rows, maximise)


@settings(deadline=None, max_examples=60)
@given(tables())
def test_the_hypervolume_counts_what_the_front_covers(table: tuple[list[list[float]], list[bool]]) -> None:
    rows, maximise = table
    reference = [-3.0 if high else 3.0 for high in maximise]
    assert pareto.hypervolume(rows, maximise, reference) == pytest.approx(
        brute_volume(rows, maximise, reference)
    )


@settings(deadline=None, max_examples=60)
@given(tables())
def test_the_knee_is_a_front_row_nearest_the_ideal(table: tuple[list[list[float]], list[bool]]) -> None:
    rows, maximise = table
    knee = pareto.knee(rows, maximise)
    if not rows:
        assert knee is None
        return
    assert knee is not None
    front = brute_front(rows, maximise)
    assert front[knee]
    costs = [[-x if high else x for x, high in zip(row, maximise, strict=True)] for row in rows]
    kept = [row for row, best in zip(costs, front, strict=True) if best]
    low, high = [min(c) for c in zip(*kept, strict=True)], [max(c) for c in zip(*kept, strict=True)]

    def distance(row: list[float]) -> float:
        unit = [(x - a) / (b - a) for x, a, b in zip(row, low, high, strict=True) if b > a]
        return (1 - sum(unit)) / math.sqrt(len(unit) or 1)

    assert distance(costs[knee]) == pytest.approx(max(map(distance, kept)))


def test_the_knee_of_two_objectives_is_farthest_from_the_line_through_the_ends() -> None:
    rows = [[0.70, 1.0], [0.88, 1.4], [0.90, 3.0], [0.91, 9.0], [0.60, 2.0]]
    assert pareto.knee(rows, [True, False]) == 1


def test_equal_rows_are_all_on_the_front() -> None:
    assert pareto.non_dominated([[0.9, 2.0], [0.9, 2.0], [0.8, 2.0]], [True, False]) == [True, True, False]


def test_one_row_is_its_own_front_and_knee() -> None:
    assert pareto.non_dominated([[1.0, 2.0]], [True, True]) == [True]
    assert pareto.knee([[1.0, 2.0]], [True, True]) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_refused(bad: float) -> None:
    for function in (pareto.non_dominated, pareto.ranks, pareto.knee):
        with pytest.raises(ValueError, match="not finite"):
            function([[1.0, 1.0], [bad, 1.0]], [True, False])
