"""What a search may spend and has spent, and what that leaves. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

RECORD = "spent"
"""In `Search.data`: what a search has spent and no other row tells, written every few seconds."""

UNITS: Mapping[str, str] = {
    "hours": "hours",
    "device_hours": "device hours",
    "epochs": "epochs",
    "energy_kwh": "kWh",
    "disk_gb": "GB of checkpoints",
}


@dataclass(frozen=True)
class Budget:
    """hours: in which the search is driven. device_hours: that workers are in jobs, all together. epochs: trained.
    energy_kwh: drawn by the device. disk_gb: of checkpoints. Infinite where nothing limits it."""

    hours: float = math.inf
    device_hours: float = math.inf
    epochs: float = math.inf
    energy_kwh: float = math.inf
    disk_gb: float = math.inf

    @classmethod
    def of(cls, limits: Mapping[str, float | None]) -> Budget:
        return cls(**{name: value for name, value in limits.items() if value is not None})


@dataclass(frozen=True)
class Spent:
    """Of each so much, with what runs counted in as far as it has gone."""

    hours: float = 0.0
    device_hours: float = 0.0
    epochs: int = 0
    energy_kwh: float = 0.0
    disk_gb: float = 0.0


def used_up(budget: Budget, spent: Spent) -> str | None:
    """Which part of the budget is used up, in words; None where something is left of each."""
    for each in fields(Budget):
        limit, value = getattr(budget, each.name), getattr(spent, each.name)
        if value >= limit:
            return f"budget.{each.name} is used up: {value:.4g} of {limit:.4g} {UNITS[each.name]}"
    return None


def seconds_left(budget: Budget, spent: Spent, workers: int) -> float:
    """Until the budget of hours or of device hours is used up, if that many workers stay in jobs."""
    hours = min(budget.hours - spent.hours, (budget.device_hours - spent.device_hours) / max(1, workers))
    return max(0.0, 3600 * hours)


def epochs_left(budget: Budget, spent: Spent) -> float:
    return max(0.0, budget.epochs - spent.epochs)
