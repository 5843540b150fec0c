from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from search import deadline

ZURICH = ZoneInfo("Europe/Zurich")


def at(*moment: int, zone=ZURICH) -> float:
    return datetime(*moment, tzinfo=zone).timestamp()


EVENING = at(2026, 11, 30, 22, 15)


@pytest.mark.parametrize(
    "text, seconds",
    [("8h", 28_800), ("90m", 5_400), ("1h30m", 5_400), ("45s", 45), ("1d2h", 93_600), (" 8h ", 28_800)],
)
def test_a_duration_counts_from_now(text, seconds):
    assert deadline.resolve(text, EVENING, ZURICH) == EVENING + seconds


@pytest.mark.parametrize(
    "text, moment",
    [
        ("07:00", at(2026, 12, 1, 7, 0)),
        ("7:00", at(2026, 12, 1, 7, 0)),
        ("23:59", at(2026, 11, 30, 23, 59)),
        ("22:15", at(2026, 12, 1, 22, 15)),
    ],
)
def test_a_time_of_day_is_the_next_one(text, moment):
    assert deadline.resolve(text, EVENING, ZURICH) == moment


def test_a_time_of_day_stays_the_clocks_time_when_the_clocks_change():
    before_the_change = at(2026, 10, 24, 22, 0)
    assert deadline.resolve("07:00", before_the_change, ZURICH) - before_the_change == 10 * 3600


@pytest.mark.parametrize(
    "text, moment",
    [
        ("2026-12-01T07:00:00Z", datetime(2026, 12, 1, 7, tzinfo=UTC)),
        ("2026-12-01T07:00:00+05:30", datetime(2026, 12, 1, 7, tzinfo=timezone(timedelta(hours=5.5)))),
        ("2026-12-01 07:00", datetime(2026, 12, 1, 7, tzinfo=ZURICH)),
    ],
)
def test_an_iso_time_without_an_offset_is_local(text, moment):
    assert deadline.resolve(text, EVENING, ZURICH) == moment.timestamp()


@pytest.mark.parametrize("text", ["2026-11-30T22:14:00", "0h", "1999-01-01"])
def test_what_is_past_is_refused(text):
    with pytest.raises(ValueError, match="is past"):
        deadline.resolve(text, EVENING, ZURICH)


@pytest.mark.parametrize("text", ["", "soon", "25:00", "12:60", "8", "h", "-8h", "8h 30", "1.5h", "24:00:00"])
def test_other_forms_are_refused_with_the_forms_that_are_known(text):
    with pytest.raises(ValueError, match='give "HH:MM", a duration'):
        deadline.resolve(text, EVENING, ZURICH)


@pytest.mark.parametrize("text", ["99999d", "0001-01-01", "9999-12-31T23:59:59-23:59"])
def test_absurd_times_are_refused(text):
    with pytest.raises(ValueError, match=text):
        deadline.resolve(text, EVENING, ZURICH)


def test_over_a_year_ahead_is_refused():
    with pytest.raises(ValueError, match="over a year"):
        deadline.resolve("400d", EVENING, ZURICH)


def test_the_form_of_a_past_deadline_is_still_right():
    deadline.check_form("1999-01-01T00:00:00")


def test_without_a_zone_the_machines_own_counts():
    local = datetime.fromtimestamp(EVENING + 3600)
    assert abs(deadline.resolve(f"{local:%H:%M}", EVENING) - (EVENING + 3600)) < 60
