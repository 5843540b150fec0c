from __future__ import annotations

from typing import Any

import pytest

from search import measuring_device, ray_nodes
from search.config import SearchConfig, from_dict, from_stored
from search.errors import UsageError
from workers import device
from workers.settings import CostSettings


def config(given: Any, **search: Any) -> SearchConfig:
    values = {"name": "s", "data": {"source": "digits"}, "cost": {"device": given}, "search": search}
    return from_dict(values)


def test_a_label_is_kept_through_the_database_and_to_workers() -> None:
    found = config({"label": "edge"})
    assert (found.cost.device, found.cost.label) == ("label:edge", "edge")
    assert from_stored(found.to_dict()).cost == found.cost
    assert CostSettings(device="label:edge") == found.cost
    assert config("cpu").cost.label is None


@pytest.mark.parametrize(
    "given", [{"label": "no such"}, {"label": ""}, {"lable": "edge"}, ["edge"], 3, "gpu"]
)
def test_what_is_no_device_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="device: "):
        config(given)


def test_on_its_node_and_on_those_that_train_it_is_the_machine_s_own_device() -> None:
    assert device.resolve("label:edge", 2) == device.resolve("auto", 2)


def test_the_inline_engine_refuses_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match=r"cost.device: label 'edge' is a Ray node's; set search.engine: ray"
    ):
        measuring_device.check(config({"label": "edge"}, engine="inline"))


def test_without_a_cluster_a_label_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(UsageError, match=r"cost.device: label 'edge' .*name the cluster in RAY_ADDRESS"):
        measuring_device.check(config({"label": "edge"}))
    measuring_device.check(config("cpu"))


def test_only_nodes_that_are_up_count() -> None:
    nodes = [
        {"Alive": True, "Labels": {"paretovit": "edge"}},
        {"Alive": False, "Labels": {"paretovit": "edge"}},
        {"Alive": True, "Labels": {"ray.io/node-id": "1"}},
        {"Alive": True, "Labels": {"paretovit": "lab"}},
    ]
    assert ray_nodes.labels(nodes) == {"edge": 1, "lab": 1}
