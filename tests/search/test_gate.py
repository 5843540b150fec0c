from __future__ import annotations

import pytest

from search import gate
from search.objectives import Limit

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
    assert found == "latency_ms 1.98 to 2.06 holds the limit 2"


def test_a_quality_is_taken_as_it_was_found() -> None:
    limit, interval = Limit("accuracy", 0.9, upper=False), {"accuracy": (0.85, 0.95)}
    assert gate.doubt([limit], {"accuracy": 0.91}, interval) is None
    assert gate.rejection([limit], {"accuracy": 0.89}, interval) is not None


def test_what_is_not_known_yet_rejects_nobody() -> None:
    assert gate.rejection([Limit("accuracy", 0.9, upper=False)], {"latency_ms": 1.0}, {}) is None


def test_violations_are_shares_of_the_limit_and_positive_when_broken() -> None:
    found = gate.violations([LATENCY, THROUGHPUT], {"latency_ms": 3.0, "throughput": 150.0})
    assert found == {"latency_ms": pytest.approx(0.5), "throughput": pytest.approx(-0.5)}
