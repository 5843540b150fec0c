"""What was foreseen of a search, as its row keeps it, beside what became of it. Imports little: readers use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from search import budget
from search.forecast import Forecast, Range
from workers.counting import counted

if TYPE_CHECKING:
    from search.store.read.rows import SearchRow

RECORD = "forecasts"
"""In `Search.data`: forecasts, the earliest first."""


def of(data: Mapping[str, Any]) -> list[Forecast]:
    return [Forecast.from_dict(each) for each in data.get(RECORD, [])]


def added(data: Mapping[str, Any], forecast: Forecast) -> dict[str, Any]:
    """`Search.data` with one more."""
    return {**data, RECORD: [*data.get(RECORD, []), forecast.to_dict()]}


def words(forecast: Forecast) -> str:
    """`about 120 candidates (90 to 160), 310 jobs, 1,900 epochs and 7.6 hours, ended by time; from ...`."""
    jobs, epochs = round(forecast.jobs.expected), round(forecast.epochs.expected)
    spent = f"{counted(jobs, 'job')}, {counted(epochs, 'epoch')}"
    return (
        f"about {between(forecast.candidates)} candidates, {spent} and {duration(forecast.hours)}, "
        f"ended by {forecast.ends_by}; from {forecast.basis}"
    )


def status_words(found: Mapping[str, Any]) -> str:
    """One of `against_fact`, in a line."""
    plain = {name: value for name, value in found.items() if name != "fact"}
    forecast, fact = Forecast.from_dict(plain), found["fact"]
    hours = fact["hours"]
    took = "" if hours is None else f" in {duration(Range(hours, hours, hours))}"
    return (
        f"{between(forecast.candidates)} candidates in {duration(forecast.hours)}, from {forecast.basis}; "
        f"so far {fact['candidates']}{took}"
    )


def against_fact(search: SearchRow, candidates: int, epochs: int) -> list[dict[str, Any]]:
    """Each forecast with what has become of it so far; hours are those in which the search was driven."""
    hours = search.data.get(budget.RECORD, {}).get("hours")
    fact = {"candidates": candidates, "epochs": epochs, "hours": hours}
    return [each.to_dict() | {"fact": fact} for each in of(search.data)]


def duration(hours: Range) -> str:
    """`7.5 (6 to 8) hours`, or minutes."""
    if hours.high >= 2:
        return f"{between(hours, '.2g')} hours"
    scaled = Range(60 * hours.expected, 60 * hours.low, 60 * hours.high)
    return f"{between(scaled, '.2g')} minutes"


def between(found: Range, form: str = ",.0f") -> str:
    """`120 (90 to 160)`."""
    if found.low == found.high:
        return format(found.expected, form)
    return f"{found.expected:{form}} ({found.low:{form}} to {found.high:{form}})"
