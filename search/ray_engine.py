"""Runs a driver's jobs on Ray Tune: one Tune trial is one job. All that touches Ray is here and in `trainable.py`.

A Tuner ends after `JOBS_A_TUNER` jobs and the next goes on, because a Tuner's memory grows with its trials. Tune
never retries (`max_failures` 0): the driver does, under a new attempt. `ray_environment.prepare` comes before the
import of this module.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import ray
from ray import tune
from ray.tune import Callback, RunConfig, TuneConfig
from ray.tune.search import Searcher

from search import hints, leftovers, ray_environment
from search.driver import Driver, Idle
from search.lanes import Lane, LanedDriver
from search.leaving import leave
from search.ray_measuring import MeasuringNode
from search.ray_nodes import NODE_KEY, hosts, nodes_of, others
from search.states import AttemptState
from search.trainable import run_job
from workers import memory_limit
from workers.job import MEASURING, Decision, EpochReport, Job, Outcome

JOBS_A_TUNER = 2000
PATIENCE_SECONDS = 0.5  # for a measurement to end, while nothing else runs
WAIT_SECONDS = 1.0  # before the driver is asked again, when nothing has happened meanwhile
SHARE_OF_MEMORY = 0.8  # of what is free, for all workers together


@dataclass
class _Running:
    """A dispatched job, by Tune's trial. pid and host become known with the first report."""

    job: Job
    stop_file: Path
    pid: int | None = None
    host: str | None = None


def run(driver: Driver, num_workers: int) -> None:
    """Returns when the driver has nothing left to do.

    num_workers: jobs at a time. Starts Ray on this machine, unless RAY_ADDRESS names a cluster. A driver with lanes
    measures on the node of its label, and trains on others.
    """
    label = driver.plan.settings.cost.label
    with _ray(driver.name, num_workers) as scratch:
        node = None
        driver.hosts = lambda: hosts(ray.nodes(), label)
        if isinstance(driver, LanedDriver) and label is not None:
            node = MeasuringNode(driver, label)
        try:
            while not _run_tuner(driver, num_workers, scratch, node):
                pass
        finally:
            if node is not None:
                node.close()


@contextmanager
def _ray(search: str, num_workers: int) -> Iterator[Path]:
    """Ray up, with a scratch folder of this process; both gone afterwards."""
    memory_mb = int(SHARE_OF_MEMORY * memory_limit.free_bytes() / memory_limit.MB / num_workers)
    os.environ.setdefault(memory_limit.VARIABLE, str(memory_mb))
    scratch = leftovers.make_scratch()
    on_sigterm = signal.getsignal(signal.SIGTERM)
    ending = threading.Event()
    for name in ("ray.tune", "ray.train"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # failed trials are the driver's to tell

    address = os.environ.get("RAY_ADDRESS")
    common: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "configure_logging": True,
    }
    try:
        # Ray's workers look for modules in the folder that this is called from, before all others: a user's search.py
        # or workers/ there would stand in for ours.
        with contextlib.chdir(scratch):
            if address:
                ray.init(address=address, **common)
            else:
                ray.init(
                    num_cpus=num_workers,
                    include_dashboard=False,
                    _temp_dir=str(scratch),
                    **common,
                )
        signal.signal(signal.SIGTERM, on_sigterm)  # ray.init replaces it
        ray_environment.silence()
        threading.Thread(
            target=_leave_when_ray_goes_down,
            args=(hints.command("resume", search), _local_ray(), ending),
            daemon=True,
        ).start()
        yield scratch
    finally:
        ending.set()
        ray.shutdown()
        leftovers.clear_mine()


def _run_tuner(driver: Driver, num_workers: int, scratch: Path, node: MeasuringNode | None) -> bool:
    """One Tuner's worth of jobs, on the machines that are not in quarantine as it begins. True when the driver has
    finished."""
    jobs = _Jobs(driver, scratch, node)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tune.Tuner(
            tune.with_resources(run_job, _slot(node, nodes_of(ray.nodes(), jobs.quarantine))),
            tune_config=TuneConfig(
                search_alg=_DriverSearcher(jobs),
                num_samples=-1,
                max_concurrent_trials=num_workers,
                reuse_actors=True,
                trial_name_creator=_trial_name,
                trial_dirname_creator=_trial_name,
            ),
            run_config=RunConfig(
                name=f"tuner-{os.getpid()}",
                storage_path=str(scratch / "tune"),
                callbacks=[_Clock(jobs)],
                verbose=0,
            ),
        ).fit()
    return jobs.finished


def _slot(node: MeasuringNode | None, quarantine: Collection[str]) -> Any:
    """What a worker takes: a core, and where a node measures, one of another node. quarantine: ids of nodes that get no
    jobs."""
    selector = {} if node is None else others(node.label)
    if quarantine:
        selector[NODE_KEY] = f"!in({','.join(sorted(quarantine))})"
    if not selector:
        return {"cpu": 1}
    return tune.PlacementGroupFactory([{"CPU": 1}], bundle_label_selector=[selector])


def _trial_name(trial: Any) -> str:
    return trial.trial_id


class _DriverSearcher(Searcher):
    """Asks the driver for every trial and tells it how each ends."""

    def __init__(self, jobs: _Jobs) -> None:
        super().__init__()
        self._jobs = jobs

    def suggest(self, trial_id: str) -> Any:
        if self._jobs.num_started >= JOBS_A_TUNER or self._jobs.must_move:
            return Searcher.FINISHED
        config = self._jobs.start(trial_id)
        if config is None and self._jobs.finished:
            return Searcher.FINISHED
        return config

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        self._jobs.report(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        self._jobs.end(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the database is the truth, and a resumed search builds a new Tuner."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing, as `save`."""

    def __getstate__(self) -> dict[str, Any]:
        return {}


class _Clock(Callback):
    """Called in every round of Tune's loop."""

    def __init__(self, jobs: _Jobs) -> None:
        self._jobs = jobs

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        self._jobs.tick()

    def __getstate__(self) -> dict[str, Any]:
        return {}


class _Jobs:
    """The driver's jobs by Tune's trial ids. node: that which measures, where trials only train. quarantine: hosts that
    get no jobs of this Tuner."""

    def __init__(self, driver: Driver, scratch: Path, node: MeasuringNode | None) -> None:
        self._driver = driver
        self._node = node
        self._stops = scratch / "stop"
        self._stops.mkdir(exist_ok=True)
        self._running: dict[str, _Running] = {}
        self._ask_again = self._ask_node_again = 0.0
        self.num_started = 0
        self.finished = False
        self.quarantine = frozenset(driver.quarantine.hosts)

    @property
    def must_move(self) -> bool:
        """Whether a machine was put in quarantine since this Tuner began, which would go on sending jobs there."""
        return self.quarantine != self._driver.quarantine.hosts.keys()

    def start(self, trial: str) -> dict[str, Any] | None:
        if self._node is not None:
            self.tick()  # without a trial Tune's loop stands, and asks for one again and again
        if time.monotonic() < self._ask_again:
            return None
        job = self._next_job()
        if isinstance(job, Idle):
            self.finished = job is Idle.FINISHED
            self._ask_again = time.monotonic() + WAIT_SECONDS
            return None
        if self._node is not None and job.kind in MEASURING:  # a last look at how the device is
            self._node.start(job)
            return None
        self.num_started += 1
        stop_file = self._stops / f"{job.id}-{job.attempt}"
        self._running[trial] = _Running(job, stop_file)
        return {"job": job.to_json(), "stop_file": str(stop_file)}

    def _next_job(self) -> Job | Idle:
        if isinstance(self._driver, LanedDriver):
            return self._driver.next_of(Lane.TRAIN)
        return self._driver.next_job()

    def report(self, trial: str, result: dict[str, Any]) -> None:
        self._ask_again = self._ask_node_again = 0.0
        running = self._running.get(trial)
        if running is None:
            return
        running.pid, running.host = result.get("pid"), result.get("hostname")
        if "report" in result:
            decision = self._driver.progress(EpochReport.from_json(result["report"]))
            if decision is Decision.STOP:
                running.stop_file.touch()
        if "outcome" in result:
            self._running.pop(trial).stop_file.unlink(missing_ok=True)
            outcome = Outcome.from_json(result["outcome"])
            self._driver.finish(outcome)
            if outcome.notes.get("device_lost"):
                _kill(running)

    def end(self, trial: str) -> None:
        """A trial that ends before its outcome has come has lost its worker."""
        self._ask_again = 0.0
        running = self._running.pop(trial, None)
        if running is not None:
            self._driver.lost(running.job.id, running.job.attempt, "its worker died", host=running.host)

    def tick(self) -> None:
        self._driver.beat()
        overdue = set(self._driver.schedule.overdue())
        for running in self._running.values():
            key = (running.job.id, running.job.attempt)
            if key in overdue:
                self._driver.lost(
                    *key, self._driver.schedule.why_overdue(*key), AttemptState.FENCED, running.host
                )
                _kill(running)
        if self._node is not None:
            self._node.overdue(overdue)
            patience = 0.0 if self._running else PATIENCE_SECONDS
            if self._node.tick(time.monotonic() >= self._ask_node_again, patience):
                self._ask_again = self._ask_node_again = 0.0
            elif not self._node.is_busy and time.monotonic() >= self._ask_node_again:
                self._ask_node_again = time.monotonic() + WAIT_SECONDS


def _leave_when_ray_goes_down(
    resume: str, ray_processes: list[psutil.Process], ending: threading.Event
) -> None:
    """Ends this process when Ray has ended under it. Ray's client would block for a minute, and then abort."""
    while not ending.wait(WAIT_SECONDS):
        if all(_runs(process) for process in ray_processes):
            continue
        if leftovers.is_clearing():
            return
        leftovers.clear_mine()
        leave(1, f"Ray went down on this machine; go on with: {resume}")


def _local_ray() -> list[psutil.Process]:
    """The processes without which a Ray that this process started cannot go on; none where it joined a cluster."""
    children = psutil.Process().children(recursive=True)
    return [process for process in children if process.name() in ("raylet", "gcs_server")]


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def _kill(running: _Running) -> None:
    """Ends a worker whose process is of no more use, where it can be reached; Ray starts another."""
    if running.pid is not None and running.host == socket.gethostname():
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGKILL)
