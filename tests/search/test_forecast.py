"""How long a search will take, or how much of it fits into a night."""

from __future__ import annotations

import pytest

from search.forecast import USED, Forecast, Shape, forecast
from search.lengths import Length

RUNGS = (3, 9, 27)


def length(seconds: float) -> Length:
    return Length(seconds, seconds / 2, seconds * 2)


def test_so_many_candidates_come_to_the_jobs_and_epochs_that_their_rungs_give() -> None:
    """27 are measured and trained for 3 epochs, 9 to the 9th and 3 to the 27th."""
    found = forecast(Shape(RUNGS, workers=1, most_candidates=27), length(1), length(10))
    assert found.ends_by == "candidates"
    assert found.candidates.expected == 27
    assert found.jobs.expected == 27 + 27 + 9 + 3
    assert found.epochs.expected == 27 * 3 + 9 * 6 + 3 * 18
    assert found.hours.expected == pytest.approx((27 + 189 * 10) / 3600 / USED)
    assert found.hours.low < found.hours.expected < found.hours.high


def test_what_is_rejected_is_measured_and_not_trained() -> None:
    found = forecast(Shape((3,), workers=1, rejected=0.5, most_candidates=40), length(1), length(10))
    assert found.jobs.expected == 40 + 20
    assert found.epochs.expected == 60


def test_a_night_holds_the_most_candidates_that_fit_into_it() -> None:
    shape = Shape(RUNGS, workers=2, seconds=8 * 3600)
    found = forecast(shape, length(1), length(10))
    assert found.ends_by == "time"
    assert found.hours.expected == pytest.approx(8)
    count = int(found.candidates.expected)
    fitting = forecast(Shape(RUNGS, workers=2, most_candidates=count), length(1), length(10))
    beyond = forecast(Shape(RUNGS, workers=2, most_candidates=count + 4), length(1), length(10))
    assert fitting.hours.expected <= 8 < beyond.hours.expected
    assert found.candidates.low < count < found.candidates.high


def test_twice_the_workers_do_about_twice_as_much() -> None:
    one, two = (forecast(Shape(RUNGS, n, seconds=36_000), length(1), length(10)) for n in (1, 2))
    assert two.candidates.expected == pytest.approx(2 * one.candidates.expected, rel=0.05)


def test_a_budget_of_epochs_ends_a_search_that_has_time_left() -> None:
    found = forecast(Shape(RUNGS, workers=1, seconds=1e6, epochs=189), length(1), length(10))
    assert found.ends_by == "epochs"
    assert found.candidates.expected == 27
    assert found.hours.expected < 1


def test_baselines_and_a_teacher_come_on_top() -> None:
    plain = forecast(Shape((9,), 1, most_candidates=10), length(1), length(10))
    more = forecast(
        Shape((9,), 1, fixed_jobs=2, fixed_epochs=9, fixed_seconds=100, most_candidates=10),
        length(1),
        length(10),
    )
    assert more.jobs.expected - plain.jobs.expected == 2
    assert more.epochs.expected - plain.epochs.expected == 9
    assert more.hours.expected - plain.hours.expected == pytest.approx(100 / 3600 / USED)


def test_a_search_that_nothing_ends_is_not_forecast() -> None:
    with pytest.raises(ValueError, match="nothing ends the search"):
        forecast(Shape(RUNGS, workers=1), length(1), length(10))


def test_a_forecast_comes_back_from_its_record() -> None:
    found = forecast(Shape(RUNGS, workers=1, most_candidates=5), length(1), length(10), "timed here", 5.0)
    assert Forecast.from_dict(found.to_dict()) == found
