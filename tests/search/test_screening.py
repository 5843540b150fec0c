from __future__ import annotations

import math
import random
from typing import Any

import pytest

from search import screened
from search.config import from_dict, from_stored
from search.objectives import Limit
from search.predictor import LEAST
from search.screening import MOST_REDRAWS, Example, Screen, Sieve

LIMIT = Limit("latency_ms", 2.0, True)


def latency(size: float) -> float:
    return math.exp(size)


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    """Measured within 3%, from 0.14 to 7.4 ms."""
    rng = random.Random(0)
    sizes = [rng.uniform(-2, 2) for _ in range(40)]
    return [Example((size,), {"latency_ms": latency(size) * rng.uniform(0.97, 1.03)}) for size in sizes]


@pytest.fixture(scope="module")
def screen() -> Screen:
    return Screen()


def never_checked(sieve: Sieve, size: float, count: int) -> list[bool]:
    """With seeds that choose nothing to be checked."""
    seeds = [seed for seed in range(200) if random.Random(seed).random() > 0.1]
    return [sieve.leaves_out((size,), seed) for seed in seeds[:count]]


def test_what_is_far_over_the_limit_is_left_out_and_what_keeps_it_is_not(
    screen: Screen, examples: list[Example]
) -> None:
    sieve = Sieve(screen, [LIMIT], examples, trusted=True)
    assert all(never_checked(sieve, 1.5, 5))
    assert sieve.left_out == 5
    assert "over the limit 2" in sieve.why
    assert not any(never_checked(sieve, 0.2, 5))


def test_what_may_keep_the_limit_is_never_left_out(screen: Screen, examples: list[Example]) -> None:
    sieve = Sieve(screen, [LIMIT], examples, trusted=True)
    assert not any(never_checked(sieve, math.log(2.01), 5))


def test_a_lower_bound_is_kept_likewise(examples: list[Example]) -> None:
    rates = [Example(one.features, {"throughput": 1000 / one.costs["latency_ms"]}) for one in examples]
    sieve = Sieve(Screen(), [Limit("throughput", 500.0, False)], rates, trusted=True)
    assert all(never_checked(sieve, 1.5, 3))
    assert "under the limit 500" in sieve.why
    assert not any(never_checked(sieve, -1.0, 3))


def test_nothing_is_left_out_before_enough_was_measured(examples: list[Example]) -> None:
    sieve = Sieve(Screen(), [LIMIT], examples[: LEAST - 1], trusted=True)
    assert not any(never_checked(sieve, 1.9, 3))


def test_qualities_and_networks_without_a_closed_form_are_not_predicted(
    screen: Screen, examples: list[Example]
) -> None:
    assert screen.broken(None, [LIMIT], examples) is None
    scored = [Example(one.features, {"accuracy": 0.1}) for one in examples]
    assert Screen().broken((1.0,), [Limit("accuracy", 0.9, False)], scored) is None


def test_one_in_ten_of_what_would_be_left_out_is_measured(screen: Screen, examples: list[Example]) -> None:
    measured = 0
    for seed in range(2000):
        sieve = Sieve(screen, [LIMIT], examples, trusted=True)
        if not sieve.leaves_out((1.5,), seed):
            assert sieve.checked is not None
            measured += 1
    assert 150 < measured < 250


def test_a_candidate_costs_a_bounded_number_of_proposals(screen: Screen, examples: list[Example]) -> None:
    sieve = Sieve(screen, [LIMIT], examples, trusted=True)
    assert never_checked(sieve, 1.5, MOST_REDRAWS + 1) == [True] * MOST_REDRAWS + [False]
    assert sieve.checked is not None


def record(*predicted: int) -> dict[str, Any]:
    checked = {str(number): {"name": "latency_ms", "limit": 2.0, "upper": True} for number in predicted}
    error = {"median": 0.08, "most": 0.21, "count": 40, "limit": 2.0}
    return {"left_out": 12, "checked": checked, "errors": {"latency_ms": error}}


def test_what_kept_the_limit_against_the_prediction_is_a_miss() -> None:
    measured = {1: {"latency_ms": 2.5}, 2: {"latency_ms": 1.9}, 3: {"params": 5.0}}
    found = screened.tally(record(1, 2, 3, 4), measured)
    assert (found.checked, found.misses, found.is_trusted) == (2, 1, True)


def test_with_too_many_misses_it_is_not_trusted() -> None:
    numbers = range(1, 15)
    measured = {number: {"latency_ms": 1.9 if number <= 3 else 2.5} for number in numbers}
    assert not screened.tally(record(*numbers), measured).is_trusted
    more = {**measured, 15: {"latency_ms": 2.5}}
    assert screened.tally(record(*range(1, 16)), more).is_trusted


def test_an_untrusted_screen_leaves_nothing_out(screen: Screen, examples: list[Example]) -> None:
    assert not any(never_checked(Sieve(screen, [LIMIT], examples, trusted=False), 1.9, 3))


def test_what_was_left_out_is_told_with_the_error_of_the_prediction() -> None:
    found = screened.summary(record(1, 2), {1: {"latency_ms": 2.5}, 2: {"latency_ms": 1.9}})
    assert found is not None
    assert screened.words(found) == (
        "12 proposals left out, predicted to break latency_ms 2; the predictor's median error on latency_ms is 8%, "
        "95% of its errors are under 21%, on 40 measurements; of 2 that were predicted so and measured nonetheless, 1 "
        "kept the limit"
    )
    assert screened.summary(None, {}) is None


def test_a_limit_may_name_a_runtime(examples: list[Example]) -> None:
    named = [Example(one.features, {"latency_ms@onnxruntime": one.costs["latency_ms"]}) for one in examples]
    sieve = Sieve(Screen(), [Limit("latency_ms@onnxruntime", 2.0, True)], named, trusted=True)
    assert all(never_checked(sieve, 1.5, 3))


def test_searches_of_before_measure_every_proposal_and_can_be_told_otherwise() -> None:
    new = from_dict({"name": "s", "data": {"source": "digits"}})
    stored = new.to_dict()
    assert from_stored(stored).search.screen == "auto"
    del stored["search"]["screen"]
    assert from_stored(stored).search.screen == "off"
    assert from_stored(stored, ["search.screen=auto"]).search.screen == "auto"
