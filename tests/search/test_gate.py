from __future__ import annotations

import pytest

from search import gate
from search.objectives import Limit, parse_constraints, resolve

LATENCY = Limit("latency_ms", 2.0, upper=True)
THROUGHPUT = Limit("throughput", 100.0, upper=False)


def test_a_value_at_its_limit_passes() -> None:
    assert gate.rejection([LATENCY, THROUGHPUT], {"latency_ms": 2.0, "throughput": 100.0}, {}) is None


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        (LATENCY, 2.5, "latency_ms 2.5 is above the limit 2"),
        (THROUGHPUT, 80.0, "throughput 80 is below the limit 100"),
    ],
)
def test_a_broken_limit_is_named_with_both_figures(limit: Limit, value: float, words: str) -> None:
    assert gate.rejection([limit], {limit.name: value}, {}) == words


@pytest.mark.parametrize(
    ("interval", "is_rejected", "is_borderline"),
    [
        ((1.8, 2.0), False, False),
        ((1.9, 2.1), False, True),
        ((2.0, 2.3), False, True),
        ((2.01, 2.3), True, False),
    ],
    ids=["all within", "around the limit", "from the limit on", "all above"],
)
def test_a_cost_is_judged_by_its_interval(interval, is_rejected: bool, is_borderline: bool) -> None:
    value = {"latency_ms": sum(interval) / 2}
    assert (gate.rejection([LATENCY], value, {"latency_ms": interval}) is not None) == is_rejected
    assert (gate.doubt([LATENCY], value, {"latency_ms": interval}) is not None) == is_borderline


def test_a_doubt_names_the_interval_and_the_limit() -> None:
    found = gate.doubt([LATENCY], {"latency_ms": 2.02}, {"latency_ms": (1.98, 2.06)})
    assert found == "latency_ms 1.98 to 2.06 contains the limit 2"


def test_a_quality_is_taken_as_it_was_found() -> None:
    limit, interval = Limit("accuracy", 0.9, upper=False), {"accuracy": (0.85, 0.95)}
    assert gate.doubt([limit], {"accuracy": 0.91}, interval) is None
    assert gate.rejection([limit], {"accuracy": 0.89}, interval) is not None


def test_what_is_not_known_yet_rejects_nobody() -> None:
    assert gate.rejection([Limit("accuracy", 0.9, upper=False)], {"latency_ms": 1.0}, {}) is None


def test_violations_are_shares_of_the_limit_and_positive_when_broken() -> None:
    found = gate.violations([LATENCY, THROUGHPUT], {"latency_ms": 3.0, "throughput": 150.0})
    assert found == {"latency_ms": pytest.approx(0.5), "throughput": pytest.approx(-0.5)}


def test_a_limit_that_follows_from_a_noisy_baseline_rejects_only_what_breaks_all_of_its_interval() -> None:
    limits = resolve(
        parse_constraints({"latency_ms": "1.5x resnet"}),
        {"resnet": {"latency_ms": 1.0}},
        {"resnet": {"latency_ms": (0.98, 1.02)}},
    )
    assert limits == (Limit("latency_ms", 1.5, True, low=pytest.approx(1.47), high=pytest.approx(1.53)),)

    def standing(low: float, high: float) -> tuple[bool, bool]:
        known = {"latency_ms": (low + high) / 2}, {"latency_ms": (low, high)}
        return gate.rejection(limits, *known) is not None, gate.doubt(limits, *known) is not None

    assert standing(1.54, 1.56) == (True, False)
    assert standing(1.51, 1.54) == (False, True), "above the limit, but not for sure"
    assert standing(1.48, 1.49) == (False, True), "below the limit, but not for sure"
    assert standing(1.44, 1.46) == (False, False)


def test_a_lower_limit_that_follows_from_a_noisy_baseline_has_its_interval_the_other_way_round() -> None:
    (limit,) = resolve(
        parse_constraints({"throughput": "0.5x resnet"}),
        {"resnet": {"throughput": 100.0}},
        {"resnet": {"throughput": (90.0, 110.0)}},
    )
    assert not limit.may_allow(44.0)
    assert limit.may_allow(46.0)
    assert not limit.surely_allows(54.0)
    assert limit.surely_allows(56.0)


def test_a_limit_that_follows_from_a_quality_is_taken_as_it_was_found() -> None:
    (limit,) = resolve(
        parse_constraints({"accuracy": "0.9x resnet"}),
        {"resnet": {"accuracy": 0.8}},
        {"resnet": {"accuracy": (0.7, 0.9)}},
    )
    assert (limit.low, limit.high) == (None, None)
