"""What a search costs beside its trainings: milliseconds a job that does nothing, on Ray.

pytest -s -m benchmark tests/benchmarks/test_search_overhead.py
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle, tune

from search import launch, ray_engine
from search.config import from_dict
from search.store.session import open_store
from workers import device
from workers.data.summary import summarise
from workers.job import CheckpointRef, Evaluation, Job, Kind, Measurement, Outcome, Status

pytestmark = pytest.mark.benchmark
CANDIDATES = 150
WORKERS = 2


def test_milliseconds_a_job_that_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"max_candidates": CANDIDATES, "rungs": [1, 3, 9], "workers": WORKERS}
    config = from_dict(
        {"name": "idle", "data": {"source": "digits"}, "training": {"epochs": 9}, "search": settings}
    )
    answer = (device.resolve("auto").id, summarise(config.data).digest)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(ray_engine, "run_job", lambda config: do_nothing(config, *answer))
    db = str(tmp_path / "idle.db")
    started = time.perf_counter()
    launch.start(config, db, lambda _: None)
    whole = time.perf_counter() - started
    store = open_store(db, create=False)
    with store.read() as reader:
        sql = "SELECT MIN(started) AS first, MAX(ended) AS last, COUNT(*) AS jobs FROM attempt"
        row = reader.rows(sql)[0]
    store.close()
    span = row["last"] - row["first"]
    report = {
        "jobs": row["jobs"],
        "ms_a_job": round(1000 * span / row["jobs"], 1),
        "seconds": round(whole, 1),
    }
    print(json.dumps(report))
    assert row["jobs"] > CANDIDATES


def do_nothing(config: dict[str, Any], device_id: str, digest: str) -> None:
    job = Job.from_json(config["job"])
    tune.report({"outcome": outcome(job, device_id, digest).to_json()})


def outcome(job: Job, device_id: str, digest: str) -> Outcome:
    value = random.Random(job.spec.digest).random()
    ids = (job.id, job.attempt, job.lease, Status.DONE)
    if job.kind == Kind.MEASURE:
        conditions = ("host-2", device_id, "a device", 1, "torch", "fp32", 1)
        figures = (
            value,
            value,
            value,
            value,
            None,
            0.1,
            0.01,
            100,
            "relative_error",
            1.0,
            1,
            1.0,
            1.0,
            0.1,
            1.0,
            0.1,
        )
        return Outcome(*ids, measurement=Measurement(*conditions, *figures))
    return Outcome(
        *ids,
        epoch=job.last_epoch,
        checkpoint=CheckpointRef(f"checkpoints/{job.id}", job.last_epoch, "0" * 64, 1),
        evaluation=Evaluation(
            split="val",
            epoch=job.last_epoch,
            num_images=100,
            accuracy=value,
            accuracy_low=value,
            accuracy_high=value,
            loss=1.0,
            class_names=("a", "b"),
            recall=(1.0, 1.0),
            recall_low=(0.9, 0.9),
            recall_high=(1.0, 1.0),
            class_counts=(50, 50),
            calibration_error=0.1,
            confusions=(),
        ),
        data_digest=digest,
    )
