from __future__ import annotations

import math
import random

import pytest

from search.predictor import LEAST, MOST, Predictor, features, learnt
from spaces import analysis
from spaces.registry import make_space
from spaces.spec import Task

FAMILIES = ("vit", "swin")


def networks(count: int, seed: int = 0, noise: float = 0.03) -> tuple[list[tuple[float, ...]], list[float]]:
    """Networks whose cost is a power law of their shape, known to `noise`."""
    rng = random.Random(seed)
    rows, costs = [], []
    for _ in range(count):
        flops, depth, family = rng.uniform(14, 22), rng.uniform(0.7, 2.7), rng.choice(FAMILIES)
        rows.append((flops, depth, *(float(family == one) for one in FAMILIES)))
        costs.append(math.exp(0.5 * flops + 0.4 * depth + 0.7 * (family == "swin") + rng.gauss(0, noise)))
    return rows, costs


def test_with_too_few_measurements_nothing_is_predicted() -> None:
    assert learnt(LEAST - 1) == 0
    with pytest.raises(ValueError, match="19 measurements are too few"):
        Predictor(*networks(LEAST - 1))


def test_it_is_learnt_anew_with_every_tenth_more_measurements() -> None:
    steps = [learnt(count) for count in range(LEAST, 300)]
    assert steps == sorted(steps)
    assert all(count * 0.9 <= learnt(count) <= count for count in range(LEAST, 300))
    assert len(set(steps)) < 30


def test_an_interval_holds_the_truth_as_often_as_it_says() -> None:
    held = total = 0
    for seed in range(6):
        predictor = Predictor(*networks(40, seed))
        for row, cost in zip(*networks(60, seed + 100), strict=True):
            found = predictor.predict(row)
            assert found.low < found.value < found.high
            held += found.low <= cost <= found.high
            total += 1
    assert held / total >= 0.93


def test_the_error_that_is_told_is_that_of_networks_that_were_not_learnt_from() -> None:
    for noise in (0.02, 0.2):
        predictor = Predictor(*networks(60, noise=noise))
        unseen = zip(*networks(200, seed=1, noise=noise), strict=True)
        found = sorted(abs(predictor.predict(row).value / cost - 1) for row, cost in unseen)
        assert predictor.errors.count == 60
        assert predictor.errors.median == pytest.approx(found[100], rel=0.5)
        assert predictor.errors.most >= found[160]


def test_what_is_unlike_everything_measured_is_known_less_well() -> None:
    rows, costs = networks(40)
    predictor = Predictor(rows, costs)
    near, far = predictor.predict(rows[0]), predictor.predict((60.0, 9.0, 0.0, 1.0))
    assert math.log(far.high / far.low) > 2 * math.log(near.high / near.low)


def test_equal_measurements_make_equal_predictions() -> None:
    rows, costs = networks(30)
    assert Predictor(rows, costs).predict(rows[3]) == Predictor(rows, costs).predict(rows[3])


def test_of_many_the_newest_are_learnt_from() -> None:
    rows, costs = networks(MOST + 5)
    assert Predictor(rows, costs).errors.count == MOST
    assert Predictor(rows, costs).predict(rows[-1]) == Predictor(rows[5:], costs[5:]).predict(rows[-1])


def test_features_are_known_where_a_closed_form_is() -> None:
    space = make_space(Task(28, 1, 10), "small")
    spec = space.spec(space.sample(random.Random(0)))
    known = analysis.analyse(spec).to_dict()
    found = features(known, spec.image_size, "vit", space.families)
    assert found is not None
    assert found[0] == pytest.approx(math.log1p(known["params"]))
    assert sum(found[-len(space.families) :]) == 1
    assert features({}, spec.image_size, "vit", space.families) is None
