from __future__ import annotations

import pytest

from search import gate
from search.objectives import Limit

LATENCY = Limit("latency_ms", 2.0, upper=True)
THROUGHPUT = Limit("throughput", 100.0, upper=False)


def test_a_value_at_its_limit_passes() -> None:
    assert gate.rejection([LATENCY, THROUGHPUT], {"latency_ms": 2.0, "throughput": 100.0}) is None


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        (LATENCY, 2.5, "latency_ms 2.5 is above the limit 2"),
        (THROUGHPUT, 80.0, "throughput 80 is below the limit 100"),
    ],
)
def test_a_broken_limit_is_named_with_both_figures(limit: Limit, value: float, words: str) -> None:
    assert gate.rejection([limit], {limit.name: value}) == words


def test_what_is_not_known_yet_rejects_nobody() -> None:
    assert gate.rejection([Limit("accuracy", 0.9, upper=False)], {"latency_ms": 1.0}) is None


def test_violations_are_shares_of_the_limit_and_positive_when_broken() -> None:
    found = gate.violations([LATENCY, THROUGHPUT], {"latency_ms": 3.0, "throughput": 150.0})
    assert found == {"latency_ms": pytest.approx(0.5), "throughput": pytest.approx(-0.5)}
