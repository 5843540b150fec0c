"""Measures on the node of a Ray cluster that has a label, in one actor there, beside the Tuner that trains elsewhere.

Tried and left: trials that ask for the label themselves (`PlacementGroupFactory` with `bundle_label_selector`, by kind
of job). Tune put every one on the right node, but gave actors that came free to trials of their own kind and kept
ending the one that was to start for the other: beside trainings of 1 s, the second of 11 measurements waited for 29 s.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError

from search.lanes import Lane, LanedDriver
from search.ray_nodes import labels, selector
from search.states import AttemptState
from workers.job import Decision, Job, Outcome

NODES_SECONDS = 10.0
"""How often it is looked whether the node is there."""


class Measurer:
    """The actor. torch is imported by its first job."""

    def perform(self, job: str) -> str:
        from workers.perform import perform

        return perform(Job.from_json(job), lambda _: Decision.CONTINUE).to_json()


@dataclass
class MeasuringNode:
    """Asks the driver for measurements and tells it how they end, one at a time. num_cpus: that the actor takes."""

    driver: LanedDriver
    label: str
    num_cpus: int = 1
    _actor: Any = None
    _job: Job | None = None
    _result: Any = None
    _look_at: float = 0.0

    @property
    def is_busy(self) -> bool:
        return self._job is not None

    def start(self, job: Job) -> None:
        """Sends a job there. The driver has dispatched it."""
        assert self._job is None, "it measures one network at a time"
        if self._actor is None:
            options = {"num_cpus": self.num_cpus, "label_selector": selector(self.label), "max_restarts": 0}
            self._actor = ray.remote(Measurer).options(**options).remote()
        self._job, self._result = job, self._actor.perform.remote(job.to_json())

    def tick(self, may_ask: bool, patience: float) -> bool:
        """Looks at what runs there and asks for more where nothing does. True when something was begun or ended.

        may_ask: False while the driver is not to be asked again. patience: seconds to wait for the end of what runs.
        """
        if self._job is not None:
            return self._look(self._job, patience)
        job = self.driver.next_of(Lane.MEASURE) if may_ask else None
        if not isinstance(job, Job):
            return False
        self.start(job)
        return True

    def overdue(self, keys: set[tuple[int, int]]) -> None:
        """Gives up what runs there, where it is among these."""
        job = self._job
        if job is not None and (job.id, job.attempt) in keys:
            self._drop()
            why = self.driver.schedule.why_overdue(job.id, job.attempt)
            self.driver.lost(job.id, job.attempt, why, AttemptState.FENCED)

    def close(self) -> None:
        """Ends the actor."""
        self._drop()

    def _look(self, job: Job, patience: float) -> bool:
        ready, _ = ray.wait([self._result], timeout=patience)
        if not ready:
            return self._is_gone(job)
        try:
            outcome = Outcome.from_json(ray.get(self._result))
        except RayError as error:
            self._drop()
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            self.driver.lost(job.id, job.attempt, f"its worker on {self.label} died: {reason}")
            return True
        self._job = self._result = None
        self.driver.finish(outcome)
        if outcome.notes.get("device_lost"):
            self._drop()
        return True

    def _is_gone(self, job: Job) -> bool:
        """Whether the node has left the cluster; Ray would wait for another with the label."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + NODES_SECONDS
        if labels(ray.nodes())[self.label]:
            return False
        self._drop()
        self.driver.lost(job.id, job.attempt, f"no node has the label {self.label!r} any more")
        return True

    def _drop(self) -> None:
        if self._actor is not None:
            ray.kill(self._actor)
        self._actor = self._job = self._result = None
