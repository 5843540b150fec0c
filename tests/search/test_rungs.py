from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search import pareto, rungs
from search.rungs import Standing
from search.states import CandidateState

UP_DOWN = (True, False)


def waiting(number: int, *scores: tuple[float, float]) -> Standing:
    return rungs.standing(number, CandidateState.WAITING, len(scores) - 1, dict(enumerate(scores)))


def training(number: int, *scores: tuple[float, float]) -> Standing:
    last = len(scores) - 1 if scores else None
    return rungs.standing(number, CandidateState.TRAINING, last, dict(enumerate(scores)))


def ended(number: int, state: CandidateState, *scores: tuple[float, float]) -> Standing:
    last = len(scores) - 1 if scores else None
    return rungs.standing(number, state, last, dict(enumerate(scores)))


@pytest.mark.parametrize(
    ("rule", "epochs", "sampler", "expected"),
    [
        ("auto", 27, "auto", (3, 9, 27)),
        ("auto", 9, "auto", (1, 3, 9)),
        ("auto", 2, "auto", (2,)),
        ("auto", 100, "auto", (11, 33, 100)),
        ("auto", 27, "tpe", (27,)),
        ("none", 27, "auto", (27,)),
        ([4, 12], 12, "auto", (4, 12)),
        ([4, 12], 12, "nsga2", (4, 12)),
    ],
)
def test_rungs_follow_the_setting_the_length_and_the_sampler(
    rule: str | list[int], epochs: int, sampler: str, expected: tuple[int, ...]
) -> None:
    assert rungs.resolve(rule, epochs, sampler) == expected


def test_a_third_goes_on_as_soon_as_three_have_completed_a_rung() -> None:
    two = [waiting(1, (0.5, 1.0)), waiting(2, (0.6, 1.0))]
    assert rungs.next_promotion(two, 2, UP_DOWN, closing=False) is None
    three = [*two, waiting(3, (0.4, 1.0))]
    assert rungs.next_promotion(three, 2, UP_DOWN, closing=False) == (2, 1)


def test_one_that_was_promoted_counts_against_the_third_even_after_it_failed() -> None:
    standings = [ended(1, CandidateState.FAILED, (0.9, 1.0)), waiting(2, (0.8, 1.0)), waiting(3, (0.7, 1.0))]
    assert rungs.next_promotion(standings, 2, UP_DOWN, closing=False) is None


def test_higher_rungs_are_served_first() -> None:
    low = [waiting(n, (0.1 * n, 1.0)) for n in range(1, 7)]
    high = [waiting(n, (0.9, 1.0), (0.1 * n, 1.0)) for n in range(7, 10)]
    assert rungs.next_promotion(low + high, 3, UP_DOWN, closing=False) == (9, 2)


def test_a_cheap_candidate_goes_on_beside_an_accurate_one() -> None:
    scores = {1: (0.9, 9.0), 2: (0.5, 1.0), 3: (0.8, 9.5), 4: (0.45, 1.5), 5: (0.4, 8.0), 6: (0.3, 9.0)}
    assert set(rungs.order(scores, UP_DOWN)[:2]) == {1, 2}


def test_a_closing_search_waits_for_those_on_their_way() -> None:
    standings = [waiting(1, (0.5, 1.0)), training(2)]
    assert rungs.next_promotion(standings, 2, UP_DOWN, closing=True) is None


def test_a_small_closing_search_still_ends_in_a_front() -> None:
    standings = [waiting(n, (0.1 * n, float(n))) for n in range(1, 5)]
    finished: set[int] = set()
    while (promotion := rungs.next_promotion(standings, 2, UP_DOWN, closing=True)) is not None:
        number, rung = promotion
        assert rung == 1
        finished.add(number)
        standings = [
            ended(s.number, CandidateState.FINISHED, s.scores[0], s.scores[0]) if s.number == number else s
            for s in standings
        ]
    assert len(finished) == 3


def test_a_single_candidate_reaches_the_last_rung() -> None:
    assert rungs.next_promotion([waiting(1, (0.5, 1.0))], 3, UP_DOWN, closing=True) == (1, 1)
    assert rungs.next_promotion([waiting(1, (0.5, 1.0), (0.6, 1.0))], 3, UP_DOWN, closing=True) == (1, 2)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10)), min_size=1, max_size=30),
)
def test_the_order_is_a_permutation_by_non_dominated_rank(rows: list[tuple[float, float]]) -> None:
    values = dict(enumerate(rows, start=1))
    ordered = rungs.order(values, UP_DOWN)
    assert sorted(ordered) == sorted(values)
    ranks = dict(zip(values, pareto.ranks(list(values.values()), UP_DOWN), strict=True))
    assert [ranks[n] for n in ordered] == sorted(ranks.values())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.booleans())
def test_promotions_never_exceed_the_quota_and_always_end(accuracies: list[float], closing: bool) -> None:
    standings = [waiting(n, (a, 1.0)) for n, a in enumerate(accuracies, start=1)]
    promoted = 0
    while (promotion := rungs.next_promotion(standings, 2, UP_DOWN, closing=closing)) is not None:
        promoted += 1
        number, _ = promotion
        standings = [
            ended(s.number, CandidateState.FINISHED, s.scores[0], s.scores[0]) if s.number == number else s
            for s in standings
        ]
    count = len(accuracies)
    assert promoted == (max(-(-count // 3), min(count, 3)) if closing else count // 3)
