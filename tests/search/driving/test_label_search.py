"""A search on a Ray cluster of two nodes on this machine: one that measures, one that trains."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from search.store.models import Attempt, Candidate, JobRow
from search.store.session import open_store
from workers.job import MEASURING

CONFIG = """
name: two
data: {source: digits, train_limit: 200, val_limit: 100}
space: {families: [vit]}
cost: {device: {label: edge}, max_seconds: 0.1, drift_minutes: 0}
training: {epochs: 2, batch_size: 64, precision: fp32, memory_format: contiguous, compile: 'off', threads: 1}
search: {max_candidates: 6, workers: 2, rungs: none}
baselines: {}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Its address. Each node keeps its locks in a folder of its own, `head` or `edge`."""
    from ray.cluster_utils import Cluster

    before = set(psutil.Process().children(recursive=True))
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "include_dashboard": False, "env_vars": locks(tmp_path, "head")},
    )
    try:
        made.add_node(num_cpus=1, labels={"paretovit": "edge"}, env_vars=locks(tmp_path, "edge"))
        yield made.address
    finally:
        mine = set(psutil.Process().children(recursive=True)) - before
        made.shutdown()
        for process in mine:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def locks(folder: Path, node: str) -> dict[str, str]:
    return {"PARETOVIT_RUNTIME_DIR": str(folder / node)}


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_one_node_measures_while_the_other_trains(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(CONFIG)
    database = str(tmp_path / "s.db")
    environment = {**os.environ, "RAY_ADDRESS": cluster, "PARETOVIT_DB": database}

    def paretovit(*arguments: str) -> Any:
        command = [sys.executable, "-m", "search.cli.main", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
        )

    done = paretovit("run", "s.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    store = open_store(database, create=False)
    try:
        states, pids = store.write(_found)
    finally:
        store.close()
    assert states == ["finished"] * 6
    assert len(pids[True]) == 1, "one process measures"
    assert not pids[True] & pids[False]
    assert list((tmp_path / "edge").glob("*.intent")), "it measured under the lock of its own machine"
    assert list((tmp_path / "head").glob("*.lock")), "trainings shared the device of theirs"
    refused = paretovit("validate", "s.yaml", "--set", "cost.device=label:lab")
    assert refused.returncode == 2
    assert "no node has the label 'lab'" in refused.stderr
    assert "labels there are: edge (1)" in refused.stderr


def _found(session: Any) -> tuple[list[str], dict[bool, set[int]]]:
    """States of the candidates; processes of the done attempts that measured, and of the others."""
    rows = session.query(Candidate).filter(Candidate.number > 0).all()
    pids: dict[bool, set[int]] = {True: set(), False: set()}
    for attempt, kind in session.query(Attempt, JobRow.kind).join(JobRow, JobRow.id == Attempt.job_id):
        pids[kind in MEASURING].add(attempt.pid)
    return [row.state for row in rows], pids
