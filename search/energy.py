"""Whether a search can have energy among its figures: only where the device counts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from search.config import SearchConfig
    from search.plan import Plan
    from workers.device import Device

NAME = "energy_mj"


def is_wanted(plan: Plan) -> bool:
    """Whether an objective or a constraint is about it."""
    return any(asked.name == NAME for asked in (*plan.objectives, *plan.constraints))


def lacking(plan: Plan, measured: Mapping[str, float], source: str) -> str | None:
    """Why a measurement is not enough for this search, or None. source: what counted energy, or why nothing did."""
    if not is_wanted(plan) or NAME in measured:
        return None
    return f"{NAME} could not be told: {source or 'the measurement has none'}"


def joules_of(config: SearchConfig, device: Device) -> Callable[[], float] | None:
    """A counter of what the device has drawn, where a budget needs one; it stands still where it does not answer."""
    if config.budget.energy_kwh is None:
        return None
    from workers.measure import energy

    counter, last = energy.counter_of(device), 0.0

    def read() -> float:
        nonlocal last
        found = None if counter is None else counter.read_mj()
        last = last if found is None else found / 1000
        return last

    return read


def check(config: SearchConfig) -> None:
    """Raises UsageError for an objective, constraint or budget of energy where this machine's device counts none."""
    if NAME in config.constraints:
        key = f"constraints.{NAME}"
    elif NAME in config.objectives:
        key = "objectives"
    elif config.budget.energy_kwh is not None:
        key = "budget.energy_kwh"
    else:
        return
    if not config.cost.energy_seconds and not key.startswith("budget"):
        raise config.error("cost.energy_seconds", f"is 0, and {key} needs {NAME}; give 2 or more")
    from search import measuring_device
    from workers.measure import energy

    if config.cost.label is not None:
        raise config.error(key, "energy is not known of a device on another node; leave it out")
    here = measuring_device.of(config)
    if energy.counter_of(here) is None:
        raise config.error(
            key, f"energy cannot be measured on {here.name}: {energy.why_none(here)}; leave it out"
        )
