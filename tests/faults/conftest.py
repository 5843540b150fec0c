"""Jobs on networks that go wrong, done in this process or in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spaces.spec import ArchSpec
from workers.job import Job, Kind
from workers.settings import CostSettings, DataSettings, JobSettings, LimitSettings, RecipeSettings

HERE = Path(__file__).parent
MakeJob = Callable[..., Job]

SERVER = """
import json, os, sys, tempfile
import faulty_models, sklearn.datasets
from workers.job import Decision, Job
from workers.perform import perform

for line in sys.stdin:
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        pid = os.fork()
        if pid == 0:
            os.dup2(errors.fileno(), 2)
            perform(Job.from_json(line), lambda report: Decision.CONTINUE)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        errors.seek(0)
        print(json.dumps([code, errors.read()]), flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: the signal) and what it wrote to stderr."""

    code: int
    errors: str


@pytest.fixture(autouse=True)
def plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The faulty networks are allowed, in this process and in those that it starts."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("PARETOVIT_PLUGINS", "faulty_models")
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path / "runtime"))


@pytest.fixture
def make_job(tmp_path: Path) -> MakeJob:
    """A short job on digits."""

    def make(model: str, kind: Kind = Kind.MEASURE, step_seconds: float = 300.0, epochs: int = 2) -> Job:
        settings = JobSettings(
            data=DataSettings("digits", train_limit=200, val_limit=100),
            recipe=RecipeSettings(epochs=epochs, batch_size=64),
            cost=CostSettings(device="cpu", max_seconds=0.05),
            limits=LimitSettings(step_seconds=step_seconds),
        )
        is_train = kind is Kind.TRAIN
        return Job(
            id=3,
            attempt=2,
            lease=5,
            kind=kind,
            search="faults",
            candidate=1,
            spec=ArchSpec(model, {"in_chans": 1, "num_classes": 10}, 8),
            settings=settings,
            artifacts=str(tmp_path / "artifacts"),
            first_epoch=1 if is_train else 0,
            last_epoch=epochs if is_train else 0,
        )

    return make


@pytest.fixture(scope="session")
def server() -> Iterator[subprocess.Popen[str]]:
    """Forks a process for every job that it reads: importing torch and timm once is slow enough."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "PARETOVIT_PLUGINS": "faulty_models"}
    command = [sys.executable, "-c", SERVER]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    yield process
    process.communicate(timeout=60)


@pytest.fixture
def perform_apart(server: subprocess.Popen[str]) -> Callable[[Job], Ended]:
    """Performs a job in a process of its own."""

    def run(job: Job) -> Ended:
        assert server.stdin is not None
        assert server.stdout is not None
        print(job.to_json(), file=server.stdin, flush=True)
        return Ended(*json.loads(server.stdout.readline()))

    return run
