"""What the planner lets start, and when it closes a search."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from search import rungs
from search.lengths import Length
from search.planner import GRACE_SECONDS, LAST_CALL_SECONDS, Planner, closing_seconds
from search.rungs import Standing


def length(seconds: float) -> Length:
    return Length(seconds, 0.7 * seconds, 1.3 * seconds)


def takes(seconds: float) -> Callable[[int, int], Length]:
    return lambda number, rung: length(seconds)


def waiting(number: int, completed: int = 1) -> Standing:
    scores = {rung: (0.5 + 0.01 * number, float(number)) for rung in range(completed)}
    return Standing(number, completed - 1, waiting=True, coming=False, scores=scores)


def coming(number: int) -> Standing:
    return Standing(number, 0, waiting=False, coming=True, scores={})


def test_nothing_starts_that_would_probably_end_too_late() -> None:
    planner = Planner(end=1000.0)
    assert planner.fits(length(100), now=870.0)
    assert not planner.fits(length(100), now=870.1)
    assert planner.fits(None, now=1000.0 - LAST_CALL_SECONDS - 1)
    assert not planner.fits(None, now=1000.0 - LAST_CALL_SECONDS)


def test_a_training_stops_before_an_epoch_that_would_end_too_late() -> None:
    planner = Planner(end=1000.0)
    assert not planner.must_stop(50.0, now=940.0)
    assert planner.must_stop(50.0, now=950.0)


def test_what_runs_over_the_end_is_given_up_within_a_minute() -> None:
    assert GRACE_SECONDS < 60
    assert not Planner(end=1000.0).is_overdue(1000.0 + GRACE_SECONDS - 1)
    assert Planner(end=1000.0).is_overdue(1000.0 + GRACE_SECONDS + 1)


def test_without_an_end_everything_fits_and_nothing_closes() -> None:
    planner = Planner()
    assert planner.fits(length(1e9), now=0.0)
    assert not planner.must_stop(1e9, now=0.0)
    assert not planner.is_overdue(1e12)
    assert not planner.closes(0.0, [waiting(n) for n in range(99)], 3, 2, takes(1e6))


@pytest.mark.parametrize(("workers", "seconds"), [(1, 300.0), (2, 200.0), (3, 100.0)])
def test_closing_takes_as_many_rounds_as_the_workers_need(workers: int, seconds: float) -> None:
    """Of six that wait at the first of two rungs three go on: more than there are objectives."""
    standings = [waiting(n) for n in range(6)]
    assert rungs.quota(6, 2) == 3
    assert closing_seconds(standings, 2, 2, workers, takes(100.0)) == seconds


def test_closing_counts_those_on_their_way_and_what_follows_them() -> None:
    standings = [waiting(n) for n in range(3)] + [coming(n) for n in range(3, 6)]
    assert closing_seconds(standings, 2, 2, 3, takes(100.0), running=[40.0, 10.0]) == 140.0


def test_a_search_closes_when_the_time_left_is_needed_and_not_before() -> None:
    standings = [waiting(n) for n in range(6)]
    planner = Planner(end=10_000.0, workers=1)
    assert not planner.closes(9_600.0, standings, 2, 2, takes(100.0))
    assert planner.closes(9_700.0, standings, 2, 2, takes(100.0))


def test_whom_there_is_no_time_for_leaves_its_place_to_the_next() -> None:
    standings = [waiting(n) for n in range(1, 7)]
    best = rungs.next_promotion(standings, 2, (True, True), closing=True)
    assert best == (6, 1)
    without = rungs.next_promotion(
        standings, 2, (True, True), closing=True, fits=lambda number, rung: number != 6
    )
    assert without == (5, 1)
    assert rungs.next_promotion(standings, 2, (True, True), closing=True, fits=lambda n, r: False) is None


def test_time_that_nothing_has_earned_goes_to_the_best_at_the_highest_rung_that_fits() -> None:
    standings = [waiting(1, 2), waiting(2, 2), waiting(3), waiting(4)]
    assert rungs.next_filler(standings, 3, (True, False), lambda n, r: True) == (2, 2)
    assert rungs.next_filler(standings, 3, (True, False), lambda n, r: r == 1) == (4, 1)
    assert rungs.next_filler(standings, 3, (True, False), lambda n, r: False) is None
