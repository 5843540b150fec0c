"""Energy as an objective or a constraint: only where the device counts it."""

from __future__ import annotations

import pytest

from search import energy
from search.config import SearchConfig, from_dict
from search.errors import UsageError
from search.plan import make_plan
from workers.data.summary import summarise
from workers.measure import energy as counters


def config(**sections: object) -> SearchConfig:
    return from_dict({"name": "s", "data": {"source": "digits"}, "baselines": {}} | sections)


class Counter:
    source = "a counter"

    def read_mj(self) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"objectives": ["accuracy", "energy_mj"]}, "objectives"),
        ({"constraints": {"energy_mj": 5.0}}, "constraints.energy_mj"),
    ],
)
def test_energy_is_refused_with_the_reason_where_the_device_counts_none(
    monkeypatch: pytest.MonkeyPatch, sections: dict[str, object], key: str
) -> None:
    monkeypatch.setattr(counters, "counter_of", lambda _: None)
    monkeypatch.setattr(
        counters, "why_none", lambda _: "no energy counter on this device: the card counts none"
    )
    with pytest.raises(UsageError) as told:
        energy.check(config(**sections))
    assert key in str(told.value)
    assert "no energy counter on this device: the card counts none; leave it out" in str(told.value)
    monkeypatch.setattr(counters, "counter_of", lambda _: Counter())
    energy.check(config(**sections))


def test_energy_that_is_asked_for_and_turned_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "counter_of", lambda _: Counter())
    with pytest.raises(UsageError, match="energy_seconds"):
        energy.check(config(objectives=["accuracy", "energy_mj"], cost={"energy_seconds": 0}))


def test_a_search_that_asks_for_no_energy_needs_no_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "counter_of", lambda _: None)
    energy.check(config())


def test_a_measurement_without_energy_is_not_enough_for_a_search_that_asks_for_it() -> None:
    plain = config()
    asking = config(objectives=["accuracy", "energy_mj"])
    data = summarise(plain.data)
    assert energy.lacking(make_plan(plain, data), {"latency_ms": 1.0}, "") is None
    plan = make_plan(asking, data)
    assert energy.lacking(plan, {"latency_ms": 1.0, "energy_mj": 2.0}, "") is None
    told = energy.lacking(plan, {"latency_ms": 1.0}, "NVML, the whole card: not above idle (70.0 W)")
    assert told == "energy_mj could not be told: NVML, the whole card: not above idle (70.0 W)"
