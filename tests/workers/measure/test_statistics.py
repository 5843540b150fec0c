from __future__ import annotations

import random

import pytest

from workers.measure.statistics import percentile, summarise


def test_the_interval_covers_the_true_median_as_often_as_it_says():
    rng = random.Random(1)
    hits = 0
    for _ in range(400):
        summary = summarise([rng.lognormvariate(0, 0.3) for _ in range(60)])
        hits += summary.low <= 1.0 <= summary.high
    assert 0.94 <= hits / 400 <= 1.0


def test_the_error_shrinks_with_the_root_of_the_samples():
    rng = random.Random(2)
    samples = [rng.gauss(10, 1) for _ in range(1600)]
    few, many = summarise(samples[:100]), summarise(samples)
    assert 2 < few.relative_error / many.relative_error < 8
    assert many.relative_error == pytest.approx(1.25 * 0.1 / 40, rel=0.5)


def test_drift_widens_the_interval():
    rng = random.Random(3)
    still = [10 + rng.gauss(0, 0.1) for _ in range(500)]
    drifting = [value * (1 + 0.2 * i / 500) for i, value in enumerate(still)]
    shuffled = random.Random(4).sample(drifting, len(drifting))
    assert summarise(drifting).relative_error > 2 * summarise(shuffled).relative_error
    summary = summarise(drifting)
    assert summary.high - summary.low > 2 * 1.96 * summary.relative_error * summary.median * 0.99


def test_p99_is_null_under_500_samples():
    assert summarise([1.0] * 499).p99 is None
    assert summarise([1.0] * 500).p99 == 1.0


def test_constant_samples_have_no_error_and_no_spread():
    summary = summarise([2.0] * 100)
    assert (summary.median, summary.low, summary.high, summary.relative_error, summary.spread) == (
        2,
        2,
        2,
        0,
        0,
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_few_samples_have_their_whole_range_as_interval(count):
    samples = [float(i + 1) for i in range(count)]
    summary = summarise(samples)
    assert (summary.low, summary.high, summary.num_samples) == (1.0, float(count), count)


def test_no_samples_are_refused():
    with pytest.raises(ValueError, match="no samples"):
        summarise([])


def test_percentiles_interpolate_as_numpy_does():
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert percentile([5.0], 0.95) == 5.0
