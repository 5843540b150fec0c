"""Names, directions and bounds of what a search trades."""

from __future__ import annotations

import math

import pytest

from search.objectives import (
    QUANTITIES,
    Constraint,
    Limit,
    parse_constraints,
    parse_objectives,
    resolve,
)


def test_every_quantity_is_known_by_its_own_name() -> None:
    assert all(name == quantity.name for name, quantity in QUANTITIES.items())
    assert {q.name for q in QUANTITIES.values() if q.maximise} == {"accuracy", "throughput"}
    assert {q.name for q in QUANTITIES.values() if q.kind == "quality"} == {"accuracy"}


@pytest.mark.parametrize(
    "names", [["accuracy"], ["accuracy", "latency_ms"], ["latency_ms", "params", "flops"]]
)
def test_one_to_three_objectives_are_taken_in_their_order(names: list[str]) -> None:
    assert [quantity.name for quantity in parse_objectives(names)] == names


@pytest.mark.parametrize(
    "names, message",
    [
        ([], "is empty"),
        (["accuracy", "latncy_ms"], "unknown quantity 'latncy_ms'; nearest: latency_ms$"),
        (["foo"], "unknown quantity 'foo'; known: accuracy, latency_ms, .*, flops$"),
        (["xyz"], "unknown quantity 'xyz'; known: accuracy"),
        (["accuracy", "accuracy"], "'accuracy' is there twice"),
        (["accuracy", "latency_ms", "params", "flops"], "4 are too many"),
        (["accuracy", 3], "unknown quantity '3'"),
    ],
)
def test_a_wrong_objective_is_named(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_objectives(names)


def test_bounds_are_numbers_or_multiples_of_a_baseline() -> None:
    assert parse_constraints(
        {"latency_ms": 5, "params": "1e6", "peak_memory_mb": "1.5x resnet", "accuracy": 0.9}
    ) == (
        Constraint("latency_ms", limit=5.0),
        Constraint("params", limit=1e6),
        Constraint("peak_memory_mb", baseline="resnet", factor=1.5),
        Constraint("accuracy", limit=0.9),
    )


@pytest.mark.parametrize(
    "bound",
    [
        math.nan,
        math.inf,
        -1,
        0,
        True,
        None,
        "",
        "fast",
        "nan",
        "-2x resnet",
        "nanx resnet",
        "1.5x",
        "x resnet",
    ],
)
def test_what_is_no_positive_number_is_refused_by_name(bound: float | str) -> None:
    with pytest.raises(ValueError, match=r"^latency_ms: .* is no bound; give a positive number"):
        parse_constraints({"latency_ms": bound})


def test_an_accuracy_in_percent_is_refused_with_the_fraction() -> None:
    with pytest.raises(ValueError, match=r"above 1; accuracies are fractions, such as 0\.9$"):
        parse_constraints({"accuracy": 90})


def test_an_unknown_quantity_cannot_be_bounded() -> None:
    with pytest.raises(ValueError, match="nearest: latency_ms"):
        parse_constraints({"latency": 5})


def test_costs_are_bounded_above_and_what_is_good_high_below() -> None:
    constraints = parse_constraints(
        {"latency_ms": "1.5x resnet", "throughput": 100.0, "accuracy": "0.9x resnet"}
    )
    latency, throughput, accuracy = resolve(constraints, {"resnet": {"latency_ms": 2.0, "accuracy": 0.8}})
    assert latency == Limit("latency_ms", 3.0, upper=True)
    assert throughput == Limit("throughput", 100.0, upper=False)
    assert accuracy.value == pytest.approx(0.72)
    assert not accuracy.upper


def test_a_baseline_that_lacks_the_figure_bounds_nothing() -> None:
    constraints = parse_constraints({"latency_ms": "1.5x resnet"})
    with pytest.raises(ValueError, match="unknown baseline 'resnet'; known: none"):
        resolve(constraints, {})
    with pytest.raises(ValueError, match="baseline 'resnet' has None"):
        resolve(constraints, {"resnet": {"accuracy": 0.9}})


def test_a_violation_is_a_share_of_the_limit_on_either_side() -> None:
    upper, lower = Limit("latency_ms", 2.0, upper=True), Limit("accuracy", 0.8, upper=False)
    assert upper.violation(3.0) == pytest.approx(0.5)
    assert upper.violation(1.0) == pytest.approx(-0.5)
    assert lower.violation(0.4) == pytest.approx(0.5)
    assert lower.violation(0.88) == pytest.approx(-0.1)


def test_a_value_on_the_limit_keeps_it_and_nan_does_not() -> None:
    for limit in (Limit("latency_ms", 2.0, upper=True), Limit("accuracy", 2.0, upper=False)):
        assert limit.allows(2.0)
        assert not limit.allows(math.nan)
