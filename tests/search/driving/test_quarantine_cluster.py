"""A search on a Ray cluster of two nodes on this machine, of which one cannot measure."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from search.store.models import Attempt, Candidate, Event
from search.store.session import open_store

CONFIG = """
name: two
data: {source: digits, train_limit: 200, val_limit: 100}
space: {families: [vit]}
cost: {max_seconds: 0.1, drift_minutes: 0}
training: {epochs: 2, batch_size: 64, precision: fp32, memory_format: contiguous, compile: 'off', threads: 1}
search: {max_candidates: 6, workers: 2, rungs: none}
baselines: {}
"""
BAD = "pv-bad"
JOIN_SECONDS = 10.0
needs_root = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="a second host name needs root and unshare",
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Its address. The second node has another host name, and no folder to lock its device in."""
    from ray.cluster_utils import Cluster

    before = set(psutil.Process().children(recursive=True))
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    (tmp_path / "file").touch()
    ray = str(Path(sys.executable).with_name("ray"))
    joins = f"hostname {BAD} && exec {ray} start --address={made.address} --num-cpus=1 --block"
    node = subprocess.Popen(
        ["unshare", "--uts", "sh", "-c", joins],
        env={**os.environ, "PARETOVIT_RUNTIME_DIR": str(tmp_path / "file")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield str(made.address)
    finally:
        mine = set(psutil.Process().children(recursive=True)) - before
        made.shutdown()
        for process in mine:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        node.wait(30)


@needs_root
@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_a_node_that_fails_two_jobs_gets_no_more_and_the_other_does_the_rest(
    cluster: str, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(CONFIG)
    database = str(tmp_path / "s.db")
    environment = {**os.environ, "RAY_ADDRESS": cluster, "PARETOVIT_DB": database}
    time.sleep(JOIN_SECONDS)  # until the second node has joined
    done = subprocess.run(
        [sys.executable, "-m", "search.cli.main", "run", "s.yaml"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    store = open_store(database, create=False)
    try:
        states = store.write(lambda s: [row.state for row in s.query(Candidate)])
        failed = store.write(lambda s: [row.host for row in s.query(Attempt) if row.state == "failed"])
        told = store.write(lambda s: [row.text for row in s.query(Event) if row.kind == "quarantined"])
    finally:
        store.close()
    assert states == ["finished"] * 6
    assert set(failed) == {BAD}
    assert len(told) == 1
    assert told[0].startswith(f"{BAD} has failed 2 jobs in a row")
