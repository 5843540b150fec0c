"""Which device a search measures on: one of this machine, or of the Ray node whose label the config names."""

from __future__ import annotations

import os
from functools import cache

from search.config import SearchConfig
from search.errors import UserError
from workers import device
from workers.device import Device


def check(config: SearchConfig) -> None:
    """Raises UsageError where the config names a label that no node has, or that its engine cannot use."""
    label = config.cost.label
    if label is None:
        return
    if config.search.engine == "inline":
        text = f"label {label!r} is a Ray node's; set search.engine: ray, or name a device of this machine"
        raise config.error("cost.device", text)
    try:
        of(config)
    except UserError as error:
        raise config.error("cost.device", str(error)) from None


def of(config: SearchConfig) -> Device:
    """Raises UserError where the node cannot be reached, DeviceError where this machine has no such device."""
    cost = config.cost
    if cost.label is None:
        return device.resolve(cost.device, cost.threads)
    return _on_node(os.environ.get("RAY_ADDRESS"), cost.label, cost.threads)


@cache
def _on_node(address: str | None, label: str, threads: int) -> Device:
    """Asked once for a cluster, by its address: connecting takes seconds."""
    del address  # which `ray_nodes` reads itself
    from search import ray_nodes

    return ray_nodes.device_of(label, threads)
