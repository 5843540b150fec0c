from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from ray.exceptions import RayActorError

from search import ray_measuring
from search.driver import Idle
from search.lanes import Lane
from search.ray_measuring import MeasuringNode
from search.states import AttemptState


class Driver:
    """Hands out one job after another and notes how they end."""

    def __init__(self) -> None:
        self.asked = 0
        self.ended: list[tuple[Any, ...]] = []
        self.schedule = SimpleNamespace(why_overdue=lambda job, attempt: f"job {job} took too long")

    def next_of(self, lane: Lane) -> Any:
        assert lane is Lane.MEASURE
        self.asked += 1
        return Idle.WAIT

    def lost(self, job: int, attempt: int, reason: str, state: AttemptState = AttemptState.LOST) -> None:
        self.ended.append((job, attempt, state, reason))


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One that measures job 3, attempt 1, and is not done; `fake.killed` counts its actors that were ended."""
    fake = SimpleNamespace(
        killed=0, ready=False, nodes=lambda: [{"Alive": True, "Labels": {"paretovit": "edge"}}]
    )

    def kill(actor: object) -> None:
        fake.killed += 1

    fake.kill = kill
    fake.wait = lambda refs, timeout: (refs, []) if fake.ready else ([], refs)
    monkeypatch.setattr(ray_measuring, "ray", fake)
    made = MeasuringNode(cast(Any, Driver()), "edge")
    made._actor, made._job, made._result = object(), cast(Any, SimpleNamespace(id=3, attempt=1)), object()
    return made, made.driver, fake


def test_while_it_measures_it_asks_for_nothing(node: Any) -> None:
    measuring, driver, _ = node
    assert not measuring.tick(True, 0.0)
    assert (driver.asked, driver.ended) == (0, [])


def test_what_takes_too_long_is_given_up_and_its_process_ended(node: Any) -> None:
    measuring, driver, fake = node
    measuring.overdue({(4, 1)})
    assert driver.ended == []
    measuring.overdue({(3, 1)})
    assert driver.ended == [(3, 1, AttemptState.FENCED, "job 3 took too long")]
    assert fake.killed == 1
    assert not measuring.is_busy


def test_a_process_that_dies_is_told_as_lost(node: Any) -> None:
    measuring, driver, fake = node

    def get(_: object) -> None:
        raise RayActorError(error_msg="killed")

    fake.ready, fake.get = True, get
    assert measuring.tick(True, 0.0)
    assert driver.ended[0][:3] == (3, 1, AttemptState.LOST)
    assert "its worker on edge died" in driver.ended[0][3]


def test_a_node_that_leaves_the_cluster_is_not_waited_for(node: Any) -> None:
    measuring, driver, fake = node
    fake.nodes = lambda: [{"Alive": False, "Labels": {"paretovit": "edge"}}]
    assert measuring.tick(True, 0.0)
    assert driver.ended == [(3, 1, AttemptState.LOST, "no node has the label 'edge' any more")]
    assert not measuring.tick(False, 0.0)
    assert driver.asked == 0, "not before it may"
