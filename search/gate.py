"""The gate: what a measurement says, and whether a candidate is within its limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from search.objectives import Limit

if TYPE_CHECKING:  # `front` imports this module, and has half a second
    from workers.job import Measurement

Interval = tuple[float, float]


def measured_values(measurement: Measurement) -> tuple[dict[str, float], dict[str, Interval]]:
    """Quantities of a measurement by name, and 95% intervals of those that have one."""
    values = {
        "latency_ms": measurement.latency_ms,
        "latency_ms_p95": measurement.latency_ms_p95,
        "throughput": measurement.throughput,
        "peak_memory_mb": measurement.peak_memory_mb,
        "model_mb": measurement.model_mb,
    }
    return values, {"latency_ms": (measurement.latency_ms_low, measurement.latency_ms_high)}


def rejection(limits: Sequence[Limit], values: Mapping[str, float]) -> str | None:
    """Why a candidate breaks a limit with what is known of it, or None. An unknown quantity breaks none."""
    for limit in limits:
        if limit.name in values and not limit.allows(values[limit.name]):
            side = "above" if limit.upper else "below"
            return f"{limit.name} {values[limit.name]:.4g} is {side} the limit {limit.value:.4g}"
    return None


def violations(limits: Sequence[Limit], values: Mapping[str, float]) -> dict[str, float]:
    """Quantity -> by what share of its limit it is broken; negative when there is room."""
    return {limit.name: limit.violation(values[limit.name]) for limit in limits if limit.name in values}
