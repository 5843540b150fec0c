"""A search on digits whose jobs are answered from a formula instead of being run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import optuna
import pytest

from search import own_families, teaching
from search.config import SearchConfig, from_dict
from search.driver import Driver, Idle
from search.plan import make_plan
from search.store.session import Store, open_store
from search.store.write import searches
from search.study import Study
from workers.data.summary import summarise
from workers.execution import Execution, Probed, Trial
from workers.job import (
    MEASURING,
    CheckpointRef,
    EpochReport,
    Evaluation,
    Job,
    Kind,
    Measurement,
    Outcome,
    Status,
)

DEVICE = "cpu-of-tests-1t"
EXECUTED = {"precision": "fp32", "memory_format": "contiguous", "compile": "off", "threads": 1}
"""With which no probe runs."""
SECTIONS = ("constraints", "training", "limits", "baselines", "space", "objectives", "cost", "budget")


def formula(job: Job, digest: str) -> Outcome:
    """What a worker would say: bigger networks are slower and better, all drawn from their digest."""
    size = random.Random(job.spec.digest).uniform(1, 10)
    common: dict[str, Any] = {
        "job": job.id,
        "attempt": job.attempt,
        "lease": job.lease,
        "status": Status.DONE,
        "host": "here",
        "pid": 1,
        "seconds": 0.1,
        "device_id": DEVICE,
    }
    if job.kind in MEASURING:
        further = tuple(
            replace(measurement(size / 2), runtime=one.runtime, precision=one.precision)
            for one in job.further
        )
        return Outcome(**common, measurement=measurement(size), further=further, notes={"params": 1000})
    if job.kind == Kind.PROBE:
        return Outcome(**common, probed=PROBED, data_digest=digest)
    accuracy = min(0.99, 0.4 + 0.04 * size + 0.01 * job.last_epoch)
    low, high = accuracy - 0.01, accuracy + 0.01
    reports = tuple(
        EpochReport(job.id, job.attempt, job.lease, epoch, 1.0, 1.0, accuracy, low, high, 1e-3, 0.1)
        for epoch in range(job.first_epoch, job.last_epoch + 1)
    )
    return Outcome(
        **common,
        epochs=reports,
        epoch=job.last_epoch,
        checkpoint=CheckpointRef(f"checkpoints/{job.id}-{job.attempt}", job.last_epoch, "0" * 64, 10),
        evaluation=evaluation(job.last_epoch, accuracy, low, high),
        data_digest=digest,
    )


PROBED = Probed(
    execution=Execution("bf16", "channels_last"),
    reference=Execution(),
    speed=1.34,
    why="1.34x the speed of fp32, contiguous, 1 thread",
    trials=(Trial(Execution(), (4.02,)), Trial(Execution("bf16", "channels_last"), (3.0,))),
    seconds=0.5,
)


def evaluation(epoch: int, accuracy: float, low: float, high: float) -> Evaluation:
    return Evaluation(
        split="val",
        epoch=epoch,
        num_images=269,
        accuracy=accuracy,
        accuracy_low=low,
        accuracy_high=high,
        loss=1.0,
        class_names=("a", "b"),
        recall=(1.0, None),
        recall_low=(0.9, None),
        recall_high=(1.0, None),
        class_counts=(269, 0),
        calibration_error=0.1,
        confusions=(),
    )


def measurement(latency: float) -> Measurement:
    return Measurement(
        protocol="host-2",
        device_id=DEVICE,
        device_name="a CPU",
        threads=1,
        runtime="torch",
        precision="fp32",
        batch_size=1,
        latency_ms=latency,
        latency_ms_low=latency * 0.99,
        latency_ms_high=latency * 1.01,
        latency_ms_p95=latency * 1.1,
        latency_ms_p99=None,
        latency_ms_spread=0.02,
        latency_relative_error=0.005,
        num_samples=200,
        stopped_by="relative_error",
        throughput=1000 / latency,
        throughput_batch_size=8,
        peak_memory_mb=10.0,
        model_mb=1.0,
        build_seconds=0.1,
        first_call_ms=2.0,
        seconds=0.2,
    )


@pytest.fixture
def answer() -> Callable[[Job, str], Outcome]:
    return formula


class Bench:
    """Drivers of one search on one database, one after another, as after kills."""

    def __init__(self, store: Store, config: SearchConfig, artifacts: Path) -> None:
        self.store = store
        self.config = config
        self.plan = teaching.with_teacher(
            make_plan(config, summarise(config.data), own=own_families.named(config))
        )
        self.artifacts = artifacts
        data = asdict(self.plan.data)
        self.digest = self.plan.data.digest
        self.search_id = store.write(
            lambda s: searches.create(s, config.name, config.to_dict(), data, str(artifacts), None)
        )

    def driver(self, made: Mapping[str, Any] = MappingProxyType({}), **start: Any) -> Driver:
        """A driver that has started; an earlier one of this process counts as dead. made: what else it is made of."""
        settings = self.config.search
        kwargs = self.store.optuna_engine_kwargs
        storage = optuna.storages.RDBStorage(self.store.optuna_url, engine_kwargs=kwargs)
        driver = Driver(
            store=self.store,
            study=Study(
                storage,
                self.config.name,
                self.plan.space,
                self.plan.objectives,
                settings.sampler,
                settings.seed,
            ),
            search_id=self.search_id,
            name=self.config.name,
            plan=self.plan,
            device_id=DEVICE,
            artifacts=self.artifacts,
            **made,
        )
        driver.start(**start)
        return driver

    def run(self, driver: Driver, perform: Callable[[Job], Outcome] | None = None, most: int = 10_000) -> int:
        """Answers jobs one by one until the driver has finished or `most` are done; returns how many."""
        for count in range(most):
            job = driver.next_job()
            if isinstance(job, Idle):
                assert job is Idle.FINISHED
                return count
            driver.finish(perform(job) if perform else formula(job, self.digest))
        return most

    def rows(self, model: Any) -> list[Any]:
        """All rows of a table that belong to this search, where the table knows."""
        found = self.store.write(lambda s: s.query(model).order_by(model.id).all())
        return [row for row in found if getattr(row, "search_id", self.search_id) == self.search_id]


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    stores: list[Store] = []

    def make(db: str = "searches.db", **search: Any) -> Bench:
        sections = {name: search.pop(name) for name in SECTIONS if name in search}
        settings = {"max_candidates": 12, "workers": 1, "engine": "inline"} | search
        name = f"s{len(stores)}"
        plain = {"name": name, "data": {"source": "digits"}, "training": {"epochs": 9}, "search": settings}
        sections["training"] = EXECUTED | sections.get("training", plain["training"])
        store = open_store(str(tmp_path / db), create=True)
        stores.append(store)
        return Bench(store, from_dict(plain | sections), tmp_path / "artifacts" / name)

    yield make
    for store in stores:
        store.close()
