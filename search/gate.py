"""The gate: what a measurement says, and whether a candidate is within its limits. Pure.

A cost that was measured is known to an interval. A candidate is rejected when all of that breaks the limit, is within
the limit when all of it keeps it, and is borderline in between. A limit that follows from a baseline's cost has an
interval as well: rejected is what breaks all of that, within the limit what keeps all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from search import named_runtimes
from search.named_runtimes import NamedRuntime
from search.objectives import Limit, quantity

if TYPE_CHECKING:  # `front` imports this module, and has half a second
    from workers.job import Measurement

Interval = tuple[float, float]


Values = tuple[dict[str, float], dict[str, Interval]]
"""Of quantities by name, and 95% intervals of those that have one."""


def measured_values(measurement: Measurement) -> Values:
    """What a measurement in `cost.runtime` says."""
    values = {
        "latency_ms": measurement.latency_ms,
        "latency_ms_p95": measurement.latency_ms_p95,
        "throughput": measurement.throughput,
        "peak_memory_mb": measurement.peak_memory_mb,
        "model_mb": measurement.model_mb,
    }
    if measurement.energy_mj is not None:
        values["energy_mj"] = measurement.energy_mj
    return values, {"latency_ms": (measurement.latency_ms_low, measurement.latency_ms_high)}


def named_values(named: Sequence[NamedRuntime], measurements: Sequence[Measurement]) -> Values:
    """What measurements of one architecture say of the quantities that name a runtime."""
    by_runtime = {(found.runtime, found.precision): measured_values(found) for found in measurements}
    values, intervals = {}, {}
    for one in named:
        if one.key in by_runtime:
            found, bounds = by_runtime[one.key]
            values |= {f"{name}{one.suffix}": found[name] for name in named_runtimes.QUANTITIES}
            intervals |= {f"{name}{one.suffix}": pair for name, pair in bounds.items()}
    return values, intervals


def rejection(
    limits: Sequence[Limit], values: Mapping[str, float], intervals: Mapping[str, Interval]
) -> str | None:
    """Why a candidate breaks a limit for sure with what is known of it, or None. An unknown quantity breaks none."""
    for limit in limits:
        if limit.name in values and not any(map(limit.may_allow, _range(limit, values, intervals))):
            side = "above" if limit.upper else "below"
            return f"{limit.name} {values[limit.name]:.4g} is {side} the limit {limit.value:.4g}"
    return None


def doubt(
    limits: Sequence[Limit], values: Mapping[str, float], intervals: Mapping[str, Interval]
) -> str | None:
    """Which limit it is not known whether a candidate keeps, or None."""
    for limit in limits:
        if limit.name in values:
            low, high = _range(limit, values, intervals)
            ends = (low, high)
            if any(map(limit.may_allow, ends)) and not all(map(limit.surely_allows, ends)):
                around = "" if limit.low is None else f", {limit.low:.4g} to {limit.high:.4g}"
                return f"{limit.name} {low:.4g} to {high:.4g} contains the limit {limit.value:.4g}{around}"
    return None


def _range(limit: Limit, values: Mapping[str, float], intervals: Mapping[str, Interval]) -> Interval:
    """What a limit is compared with: a cost's interval, where it has one. Qualities are taken as they were found."""
    value = values[limit.name]
    is_cost = quantity(limit.name).kind == "cost"
    return intervals.get(limit.name, (value, value)) if is_cost else (value, value)


def violations(limits: Sequence[Limit], values: Mapping[str, float]) -> dict[str, float]:
    """Quantity -> by what share of its limit it is broken; negative when there is room."""
    return {limit.name: limit.violation(values[limit.name]) for limit in limits if limit.name in values}
