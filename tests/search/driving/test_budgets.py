"""A search that has used up a budget ends, with what it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search.states import SearchState
from search.store.models import Candidate, Epoch, Search

Make = Callable[..., Any]


def test_energy_is_counted_by_the_devices_counter_and_ends_the_search(make_bench: Make) -> None:
    """Every look at the counter finds a hundredth of a kilowatt-hour more."""
    bench = make_bench(max_candidates="auto", budget={"energy_kwh": 0.5})
    drawn = iter(range(0, 10**9, 36_000))
    driver = bench.driver({"joules": lambda: float(next(drawn))})
    bench.run(driver)
    search = bench.rows(Search)[0]
    assert search.state == SearchState.FINISHED
    assert search.reason.startswith("budget.energy_kwh is used up: ")


def test_no_more_epochs_are_trained_than_the_budget_has(make_bench: Make) -> None:
    bench = make_bench(max_candidates="auto", budget={"epochs": 60})
    bench.run(bench.driver())
    assert bench.rows(Search)[0].state == SearchState.FINISHED
    assert 40 <= len(bench.rows(Epoch)) <= 60
    assert [row for row in bench.rows(Candidate) if row.number > 0 and row.state == "finished"]
