"""Which candidate is picked, and what is said about it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search import chance, pareto
from search.objectives import QUANTITIES, Limit
from search.pick import NothingFits, Option, Wish, contradiction, known_weights, pick

OBJECTIVES = (QUANTITIES["accuracy"], QUANTITIES["latency_ms"])
FRONT = {"#1": (0.70, 1.0), "#2": (0.88, 1.4), "#3": (0.90, 3.0), "#4": (0.91, 9.0), "#5": (0.60, 2.0)}


def option(label: str, accuracy: float, latency: float, half: float = 0.001, **more: float) -> Option:
    values = {"accuracy": accuracy, "latency_ms": latency} | more
    return Option(label, values, {"accuracy": (accuracy - half, accuracy + half)})


OPTIONS = [option(label, *values) for label, values in FRONT.items()]


def label_of(wish: Wish, options: list[Option] = OPTIONS) -> str:
    return options[pick(options, OBJECTIVES, wish).chosen].label


def under(name: str, value: float) -> Limit:
    return Limit(name, value, upper=True)


def at_least(name: str, value: float) -> Limit:
    return Limit(name, value, upper=False)


def test_without_options_the_knee_is_picked() -> None:
    picked = pick(OPTIONS, OBJECTIVES, Wish())
    assert picked == pick(OPTIONS, OBJECTIVES, Wish(rule="knee"))
    assert OPTIONS[picked.chosen].label == "#2"
    assert picked.reason.startswith("knee of the 4 candidates that no other beats")


def test_the_knee_is_farthest_from_the_line_through_the_ends_with_costs_as_logarithms() -> None:
    """By hand: from (0.70, ln 1) to (0.91, ln 9), x + y = 1 is the line; the smallest sum is farthest."""
    ends = (0.91, 0.70), (math.log(1.0), math.log(9.0))
    sums = {
        label: (ends[0][0] - accuracy) / 0.21 + (math.log(latency) - ends[1][0]) / ends[1][1]
        for label, (accuracy, latency) in FRONT.items()
        if label != "#5"
    }
    assert label_of(Wish(rule="knee")) == min(sums, key=sums.__getitem__)
    following = pick(OPTIONS, OBJECTIVES, Wish(rule="knee")).following
    assert OPTIONS[following[0]].label == sorted(sums, key=sums.__getitem__)[1]


def test_the_unit_of_a_cost_does_not_change_what_is_picked() -> None:
    for factor in (1e-3, 7.0, 1e6):
        scaled = [option(o.label, o.values["accuracy"], o.values["latency_ms"] * factor) for o in OPTIONS]
        assert label_of(Wish(rule="knee"), scaled) == "#2"
        weights = {"accuracy": 3.0, "latency_ms": 1.0}
        assert label_of(Wish(rule=weights), scaled) == label_of(Wish(rule=weights))


def test_a_front_that_bends_nowhere_gives_its_cheap_end_and_says_so() -> None:
    options = [option("#1", 0.9, 4.0), option("#2", 0.8, 2.0), option("#3", 0.85, 3.9)]
    picked = pick(options, OBJECTIVES, Wish())
    assert options[picked.chosen].label == "#2"
    assert "bend nowhere" in picked.reason
    assert picked.reason.startswith("the end with the best latency_ms of ")
    assert "knee" not in picked.reason


def test_with_one_objective_bounded_the_other_decides() -> None:
    assert label_of(Wish((under("latency_ms", 3.0),))) == "#3"
    assert label_of(Wish((at_least("accuracy", 0.88),))) == "#2"
    reason = pick(OPTIONS, OBJECTIVES, Wish((under("latency_ms", 3.0),))).reason
    assert reason.startswith("highest accuracy of the 3 candidates with latency_ms at most 3 that no other")


def test_bounds_on_all_or_none_of_the_objectives_leave_the_knee() -> None:
    both = Wish((under("latency_ms", 9.0), at_least("accuracy", 0.69)))
    assert label_of(both) == "#2"
    options = [option(o.label, *FRONT[o.label], params=1e6) for o in OPTIONS]
    assert label_of(Wish((under("params", 2e6),)), options) == "#2"


def test_bounds_and_the_knee_go_together() -> None:
    assert label_of(Wish((at_least("accuracy", 0.9),), "knee")) == "#3"


def test_a_bound_is_kept_by_the_value_that_equals_it() -> None:
    assert label_of(Wish((under("latency_ms", 1.4),))) == "#2"
    assert label_of(Wish((at_least("accuracy", 0.91),))) == "#4"


def test_bounds_contradict_each_other_when_no_value_keeps_both() -> None:
    pair = under("latency_ms", 1.0), at_least("latency_ms", 2.0)
    assert contradiction((at_least("accuracy", 0.9), *pair[::-1])) == pair
    assert contradiction((under("latency_ms", 2.0), at_least("latency_ms", 2.0))) is None
    assert contradiction((under("latency_ms", 1.0), at_least("accuracy", 2.0))) is None
    assert contradiction(()) is None


def test_a_bound_on_another_quantity_lets_in_what_the_rest_of_the_front_beats() -> None:
    options = [option("#1", 0.9, 1.0, params=9e6), option("#2", 0.8, 2.0, params=1e6)]
    picked = pick(options, OBJECTIVES, Wish((under("params", 2e6),)))
    assert options[picked.chosen].label == "#2"
    assert "#1 beats it in the objectives, but breaks the bounds" in picked.reason
    assert "the only candidate with params at most 2e+06 that no other beats" in picked.reason


def test_a_candidate_without_the_bounded_quantity_does_not_qualify() -> None:
    options = [option("#1", 0.9, 1.0), option("#2", 0.8, 2.0, params=1e6)]
    assert label_of(Wish((under("params", 2e6),)), options) == "#2"


@pytest.mark.parametrize(
    ("weights", "label"),
    [
        ({"accuracy": 1.0, "latency_ms": 0.0}, "#4"),
        ({"accuracy": 0.0, "latency_ms": 1.0}, "#1"),
        ({"accuracy": 1.0, "latency_ms": 1.0}, "#2"),
        ({"accuracy": 8.0, "latency_ms": 1.0}, "#3"),
        ({"accuracy": 1.0}, "#4"),
    ],
)
def test_weights_say_which_objective_matters(weights: dict[str, float], label: str) -> None:
    picked = pick(OPTIONS, OBJECTIVES, Wish(rule=weights))
    assert OPTIONS[picked.chosen].label == label
    assert "accuracy x " in picked.reason


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(0.1, 0.9), st.floats(0.1, 100.0)), min_size=1, max_size=12))
def test_whatever_the_rule_the_pick_is_on_the_front_and_nothing_is_named_twice(
    values: list[tuple[float, float]],
) -> None:
    options = [option(f"#{i}", *value) for i, value in enumerate(values, start=1)]
    best = pareto.non_dominated(values, [True, False])
    wishes = [Wish(), Wish(rule={"accuracy": 1.0, "latency_ms": 2.0}), Wish((under("latency_ms", 100.0),))]
    for wish in wishes:
        picked = pick(options, OBJECTIVES, wish)
        named = [picked.chosen, *picked.following]
        assert len(set(named)) == len(named) == min(4, sum(best))
        assert all(best[i] for i in named)


@pytest.mark.parametrize("wish", [Wish(), Wish(rule={"accuracy": 1.0}), Wish((under("latency_ms", 9.0),))])
def test_costs_that_differ_less_than_their_logarithms_can_tell_keep_their_order(wish: Wish) -> None:
    fast, slow = 0.1, math.nextafter(0.1, 1.0)
    assert math.log(fast) == math.log(slow)
    beaten = [option("#1", 0.5, slow), option("#2", 0.5, fast)]
    assert (pick(beaten, OBJECTIVES, wish).chosen, pick(beaten, OBJECTIVES, wish).following) == (1, ())
    both = [option("#1", 0.6, slow), option("#2", 0.5, fast)]
    assert len(pick(both, OBJECTIVES, wish).following) == 1


def test_overlapping_intervals_with_the_next_one_are_said() -> None:
    wide = [option(o.label, *FRONT[o.label], half=0.02) for o in OPTIONS]
    wish = Wish((under("latency_ms", 9.0),))
    assert "interval of accuracy overlaps that of #3, the next one" in pick(wide, OBJECTIVES, wish).reason
    assert "overlap" not in pick(OPTIONS, OBJECTIVES, wish).reason


def test_a_baseline_that_beats_the_pick_is_named() -> None:
    baselines = [option("resnet", 0.95, 0.5), option("slow", 0.95, 50.0)]
    reason = pick(OPTIONS, OBJECTIVES, Wish(), baselines).reason
    assert "the baseline resnet is at least as good in every objective" in reason
    assert "slow" not in reason
    assert "resnet" not in pick(OPTIONS, OBJECTIVES, Wish((at_least("latency_ms", 0.6),)), baselines).reason


def test_when_nothing_fits_the_bound_and_the_closest_are_named() -> None:
    with pytest.raises(NothingFits) as one:
        pick(OPTIONS, OBJECTIVES, Wish((under("latency_ms", 0.8), at_least("accuracy", 0.8))))
    assert str(one.value) == (
        "no finished candidate has latency_ms at most 0.8; the closest is #1 with latency_ms 1, accuracy 0.7"
    )
    with pytest.raises(NothingFits, match=r"all of latency_ms at most 2, accuracy at least 0.9; .* #2 with"):
        pick(OPTIONS, OBJECTIVES, Wish((under("latency_ms", 2.0), at_least("accuracy", 0.9))))
    with pytest.raises(NothingFits, match=r"no candidate has finished"):
        pick([], OBJECTIVES, Wish())


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"params": 1.0}, "'params' is no objective of this search; its objectives: accuracy, latency_ms"),
        ({"speed": 1.0}, "'speed' is an unknown quantity"),
        ({"accuracy": -1.0}, "accuracy: -1 is no weight"),
        ({"accuracy": math.nan}, "accuracy: nan is no weight"),
        ({"accuracy": 0.0}, "no weight is above 0"),
        ({}, "no weight is above 0"),
    ],
)
def test_weights_that_say_nothing_are_refused(weights: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said.split(";")[0]):
        known_weights(weights, OBJECTIVES)


GUESS = "not told apart from guessing one of 3 classes by its interval"


def test_what_only_guesses_is_left_out_where_there_is_better_and_said_where_there_is_not() -> None:
    guessing = replace(option("#6", 0.33, 0.1), chance=GUESS)
    picked = pick([guessing, *OPTIONS], OBJECTIVES, Wish())
    assert picked.chosen == 1 + pick(OPTIONS, OBJECTIVES, Wish()).chosen
    assert f"#6 is left out, since its accuracy is {GUESS}" in picked.reason
    alone = pick([guessing], OBJECTIVES, Wish())
    assert (alone.chosen, f"its accuracy is {GUESS}" in alone.reason) == (0, True)


def test_a_bound_on_the_accuracy_that_it_keeps_lets_it_in() -> None:
    options = [replace(option("#6", 0.33, 0.1), chance=GUESS), *OPTIONS]
    wish = Wish((at_least("accuracy", 0.3),), {"latency_ms": 1.0})
    assert options[pick(options, OBJECTIVES, wish).chosen].label == "#6"


@pytest.mark.parametrize(
    ("low", "data", "is_chance"),
    [
        (0.09, {"num_classes": 10}, True),
        (0.11, {"num_classes": 10}, False),
        (None, {"num_classes": 10}, False),
        (0.09, {}, False),
    ],
)
def test_guessing_is_judged_by_the_lower_end_of_the_interval(
    low: float | None, data: dict[str, int], is_chance: bool
) -> None:
    assert bool(chance.remark(low, data)) == is_chance
