"""Nodes of a Ray cluster by the label that `cost.device: {label: NAME}` asks for: `ray start --labels paretovit=NAME`
gives a node one."""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from search.errors import UserError
from workers.device import Device

KEY = "paretovit"
"""Of the label; its value is the name."""
NODE_KEY = "ray.io/node-id"
"""Of the label that Ray itself gives every node."""
ANSWER_SECONDS = 60.0
ADDRESS = "RAY_ADDRESS"


def selector(label: str) -> dict[str, str]:
    """Of nodes that have the label."""
    return {KEY: label}


def others(label: str) -> dict[str, str]:
    """Of nodes that have not."""
    return {KEY: f"!{label}"}


def device_of(label: str, threads: int) -> Device:
    """What is measured on the node of that label: its first GPU, else its CPU.

    Raises UserError, naming the labels there are, where no node has it, where several have, and where no cluster is
    named.
    """
    if not os.environ.get(ADDRESS):
        raise UserError(
            f"label {label!r} is that of a node of a Ray cluster; name the cluster in {ADDRESS}, such as "
            f"{ADDRESS}=auto"
        )
    with _connected() as ray:
        found = labels(ray.nodes())
        if found[label] != 1:
            there = ", ".join(f"{name} ({count})" for name, count in sorted(found.items())) or "none"
            many = "no node has" if not found[label] else f"{found[label]} nodes have"
            raise UserError(
                f"{many} the label {label!r}, and a search measures on one; labels there are: {there}; give one by: "
                f"ray start --labels {KEY}={label}"
            )
        look = ray.remote(_look).options(num_cpus=0, label_selector=selector(label))
        try:
            return Device(*ray.get(look.remote(threads), timeout=ANSWER_SECONDS))
        except ray.exceptions.GetTimeoutError:
            raise UserError(
                f"the node with the label {label!r} did not answer in {ANSWER_SECONDS:g} s; is it up?"
            ) from None
        except ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[-200:]
            raise UserError(f"the node with the label {label!r} cannot tell its device: {reason}") from None


def seen() -> str:
    """The cluster in a line: `3 nodes; labelled edge (1)`, or `3 nodes, none with a label`."""
    with _connected() as ray:
        nodes = ray.nodes()
    found = labels(nodes)
    count = sum(node["Alive"] for node in nodes)
    names = ", ".join(f"{name} ({number})" for name, number in sorted(found.items()))
    return f"{count} nodes" + (f"; labelled {names}" if names else ", none with a label")


def labels(nodes: list[dict[str, Any]]) -> Counter[str]:
    """Label -> nodes that are up and have it. nodes: as `ray.nodes()` gives them."""
    alive = [node for node in nodes if node["Alive"]]
    return Counter(str(node["Labels"][KEY]) for node in alive if KEY in node.get("Labels", {}))


def hosts(nodes: list[dict[str, Any]], but: str | None = None) -> set[str]:
    """Host names of the nodes that are up; without those labelled `but`. nodes: as `ray.nodes()` gives them."""
    there = (node for node in nodes if node["Alive"])
    return {node["NodeManagerHostname"] for node in there if but is None or node["Labels"].get(KEY) != but}


def nodes_of(nodes: list[dict[str, Any]], names: Collection[str]) -> set[str]:
    """Ids of the nodes on these hosts."""
    return {node["NodeID"] for node in nodes if node["Alive"] and node["NodeManagerHostname"] in names}


@contextmanager
def _connected() -> Iterator[Any]:
    """Ray, connected to the cluster; left again at the end."""
    from search import ray_environment

    ray_environment.prepare()
    import ray

    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=os.environ[ADDRESS], log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{ADDRESS}={os.environ[ADDRESS]}: no Ray cluster answers there: {reason}") from None
    try:
        yield ray
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, on_sigterm)  # ray.init replaces it


def _look(threads: int) -> tuple[str, str, str, int]:
    """On the node."""
    from workers import device

    found = device.resolve("auto", threads)
    return found.torch, found.id, found.name, found.threads
