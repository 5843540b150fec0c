from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from search import windows

BERLIN = ZoneInfo("Europe/Berlin")
UTC = ZoneInfo("UTC")


def at(text: str, zone: ZoneInfo = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


def hours(window: str, now: str) -> float | None:
    """How long a window is still open."""
    moment = at(now)
    closes = windows.parse(window).closes(moment, BERLIN)
    return None if closes is None else (closes - moment) / 3600


@pytest.mark.parametrize(
    ("now", "left"),
    [
        ("2026-06-10T21:59:59", None),
        ("2026-06-10T22:00:00", 9.0),
        ("2026-06-11T00:00:00", 7.0),
        ("2026-06-11T06:59:59", 1 / 3600),
        ("2026-06-11T07:00:00", None),
        ("2026-06-11T12:00:00", None),
    ],
)
def test_a_window_over_midnight_is_open_in_the_evening_and_in_the_morning(
    now: str, left: float | None
) -> None:
    assert hours("22:00-07:00", now) == pytest.approx(left)


def test_a_window_of_the_day_is_shut_at_night() -> None:
    assert hours("9:00-17:30", "2026-06-10T09:00:00") == 8.5
    assert hours("09:00-17:30", "2026-06-10T17:30:00") is None
    assert hours("09:00-17:30", "2026-06-10T02:00:00") is None


def test_the_night_of_the_spring_is_an_hour_shorter_and_that_of_the_autumn_longer() -> None:
    assert hours("22:00-07:00", "2026-03-28T22:00:00") == 8.0
    assert hours("22:00-07:00", "2026-10-24T22:00:00") == 10.0


def test_an_end_that_the_clocks_skip_is_the_moment_after_the_gap() -> None:
    assert hours("22:00-02:30", "2026-03-29T01:30:00") == 1.0  # at 03:30, which is 02:30 of before
    assert windows.parse("02:15-02:45").opens(at("2026-03-28T12:00:00"), BERLIN) == at("2026-03-29T03:15:00")


def test_an_hour_that_the_clocks_show_twice_belongs_to_one_window() -> None:
    assert hours("01:00-02:30", "2026-10-25T01:00:00") == 1.5
    second = at("2026-10-25T02:15:00", fold=1)
    assert windows.parse("01:00-02:30").closes(second, BERLIN) is None
    assert windows.parse("02:15-05:00").closes(second, BERLIN) == at("2026-10-25T05:00:00")


def test_it_opens_next_today_or_tomorrow_and_now_where_it_is_open() -> None:
    night = windows.parse("22:00-07:00")
    assert night.opens(at("2026-06-10T12:00:00"), BERLIN) == at("2026-06-10T22:00:00")
    assert night.opens(at("2026-06-10T23:00:00"), BERLIN) == at("2026-06-10T23:00:00")
    early = windows.parse("01:00-02:00")
    assert early.opens(at("2026-06-10T12:00:00"), BERLIN) == at("2026-06-11T01:00:00")


def test_every_quarter_of_an_hour_of_two_years_is_in_the_window_exactly_when_its_clock_says_so() -> None:
    night = windows.parse("22:00-07:00")
    start = at("2025-01-01T00:00:00")
    for quarter in range(0, 2 * 365 * 96, 7):
        now = start + 900 * quarter
        clock = datetime.fromtimestamp(now, BERLIN)
        minutes = 60 * clock.hour + clock.minute
        is_night = minutes >= 22 * 60 or minutes < 7 * 60
        assert (night.closes(now, BERLIN) is not None) == is_night, clock


@pytest.mark.parametrize(
    "text",
    ["", "22", "22:00", "22:00-", "22-07", "22:00-07:61", "25:00-07:00", "7:00-07:00", "0:00-24:00", "x"],
)
def test_what_is_no_window_is_refused_with_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"HH:MM-HH:MM|whole day"):
        windows.parse(text)


def test_a_window_is_written_as_clocks_show_it() -> None:
    assert str(windows.parse(" 7:05 - 24:00 ")) == "07:05-00:00"
    assert windows.parse("12:00-24:00").closes(at("2026-06-10T13:00", UTC), UTC) == at(
        "2026-06-11T00:00", UTC
    )
