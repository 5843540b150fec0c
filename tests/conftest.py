"""Fixtures that several test folders share."""

from __future__ import annotations

import gzip
import math
import os
import random
import shutil
import signal
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything reads it: no test depends on what a network answers
os.environ["PARETOVIT_CACHE"] = tempfile.mkdtemp(
    prefix="paretovit-cache-"
)  # nor on what is in the user's folders

from search.store.session import Store, open_store
from spaces.spec import ArchSpec
from workers.settings import DataSettings

settings.register_profile("untimed", deadline=None)  # no test is to fail because the machine is busy
settings.load_profile("untimed")

FASHION = Path("/usr/share/datasets/fashion-mnist")
FILLED_STATES = (
    *["finished"] * 9,
    *["stopped"] * 4,
    *["rejected"] * 4,
    *["failed", "waiting", "training", "measured", "proposed"],
)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&%{x}"


def _read_idx(path: Path) -> np.ndarray:
    data = gzip.decompress(path.read_bytes())
    shape = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def _write_classes(folder: Path, classes: Sequence[int], each: int) -> DataSettings:
    """So many images of each class, as files of their own, its classes counted from 0."""
    folder.mkdir()
    pixels = _read_idx(FASHION / "train-images-idx3-ubyte.gz")
    labels = _read_idx(FASHION / "train-labels-idx1-ubyte.gz")
    chosen = np.concatenate([np.flatnonzero(labels == number)[:each] for number in classes])
    renamed = np.searchsorted(classes, labels[chosen]).astype(np.uint8)
    for name, array in (("train-images-idx3-ubyte", pixels[chosen]), ("train-labels-idx1-ubyte", renamed)):
        header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
        (folder / name).write_bytes(header + array.tobytes())
    return DataSettings("idx", path=str(folder), val_fraction=0.05, test_fraction=0.05)


@dataclass(frozen=True)
class Filled:
    """A database that holds one search: 22 candidates over all states and two families, and a baseline."""

    store: Store
    path: Path
    name: str
    baseline: str

    def begin(self) -> None:
        """Makes the search one that this process is running."""
        from search import lease
        from search.states import SearchState
        from search.store.read.searches import search_by_name
        from search.store.write import searches

        def write(session: Any) -> None:
            found = search_by_name(session, self.name)
            number = searches.take(session, found.id, lease.this_process())
            searches.set_state(searches.fence(session, found.id, number), SearchState.RUNNING)

        self.store.write(write)

    def add(self, number: int, state: str, width: int, family: str = "vit") -> None:
        """One candidate more, with everything that one of its state has. width: larger is slower, and more accurate."""
        self.store.write(lambda session: _Filling(session, self.name, "").add(number, family, state, width))


def fill(path: Path | str, name: str = "digits", hostile: str = "") -> Filled:
    """Makes the database at `path` or URL. hostile: put wherever a user's or a model's own words may stand."""
    store = open_store(str(path), create=True)
    store.write(lambda session: _Filling(session, name, hostile).fill())
    return Filled(store, Path(path), name, hostile or "resnet")


@pytest.fixture(scope="session", autouse=True)
def _cache_is_removed() -> Iterator[None]:
    yield
    shutil.rmtree(os.environ["PARETOVIT_CACHE"], ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _signals_are_heard() -> None:
    """Also where the tests run in the background or under nohup, which start them with signals ignored: what they
    start would ignore them as well."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def fashion_classes() -> Callable[[Path, Sequence[int], int], DataSettings]:
    """Writes so many images of each of some of Fashion-MNIST's classes, as a data set of their own."""
    return _write_classes


@pytest.fixture(scope="session")
def fill_at() -> Callable[..., Filled]:
    """`fill`, for tests that choose the database."""
    return fill


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    """A finished search's database."""
    made = fill(tmp_path / "filled.db")
    yield made
    made.store.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Filled]:
    """A database whose search is being run, by this process."""
    made = fill(tmp_path / "running.db")
    made.begin()
    yield made
    made.store.close()


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Filled]:
    """The same, with markup in every name, argument, class and reason."""
    made = fill(tmp_path / "hostile.db", name="evil" + HOSTILE, hostile=HOSTILE)
    yield made
    made.store.close()


class _Filling:
    """Figures follow simple curves of the candidate's size with some seeded noise."""

    RUNGS = (4, 12)
    VAL_IMAGES = 270

    def __init__(self, session: Any, name: str, hostile: str) -> None:
        self.session, self.name, self.hostile = session, name, hostile
        self.rng = random.Random(7)
        self.start = time.time() - 300.0

    def fill(self) -> None:
        from search.config import from_dict
        from search.store.write import searches

        bound = "1.5x resnet"
        config = from_dict(
            {
                "name": "digits",
                "data": {"source": "digits"},
                "constraints": {"latency_ms": bound},
                "training": {"epochs": 12},
                "search": {"rungs": [4, 12], "max_candidates": len(FILLED_STATES), "workers": 2},
            }
        ).to_dict()
        if self.hostile:
            config |= {"constraints": {}, "artifacts": self.hostile}
        classes = [f"{digit}{self.hostile}" for digit in range(10)]
        data = {
            "image_size": 8,
            "channels": 1,
            "num_classes": 10,
            "class_names": classes,
            "num_images": {"train": 1258, "val": self.VAL_IMAGES, "test": 269},
            "digest": "0123456789abcdef",
            "executions": {"vit": self._execution(), "resnet10t": self._execution()},
        }
        self.search = searches.create(self.session, self.name, config, data, "/nowhere/digits", None)
        from search.store.models import Search

        row = self.session.get(Search, self.search)
        row.state, row.started, row.ended = "finished", self.start, self.start + 200.5
        row.device_id = f"cpu:0123{self.hostile}"
        self._candidate(-1, "baseline", "finished", 16)
        for number, state in enumerate(FILLED_STATES, start=1):
            family = ("vit", "swin")[number % 2]
            width = 96 if state == "rejected" else 8 + 3 * ((number * 5) % 11)
            self._candidate(number, family, state, width)
        self._event("end", "finished")

    def _execution(self) -> dict[str, Any]:
        from search.executions import Choice
        from workers.execution import Execution, Probed, Trial

        plain, chosen = Execution(), Execution("bf16", "channels_last")
        trials = (
            Trial(plain, (4.02,)),
            Trial(chosen, (3.0,)),
            Trial(Execution("bf16"), out="its loss is nan"),
        )
        why = f"1.34x the speed of {plain.words}{self.hostile}"
        return Choice(chosen, why, Probed(chosen, plain, 1.34, why, trials, 2.5), 2, "cpu:0123").to_dict()

    def add(self, number: int, family: str, state: str, width: int) -> None:
        from search.store.read.searches import search_by_name

        self.rng = random.Random(number)
        self.search = search_by_name(self.session, self.name).id
        self._candidate(number, family, state, width)

    def _candidate(self, number: int, family: str, state: str, width: int) -> None:
        from search.store.write import candidates

        baseline = number < 0
        depth = 2 + abs(number) % 3
        spec = ArchSpec(
            "resnet10t" if baseline else f"{family}_model{self.hostile}",
            {
                "img_size": 8,
                "embed_dim": width,
                "depth": depth,
                "in_chans": 1,
                "num_classes": 10,
                "x": self.hostile,
            },
            8,
        )
        size = width**2 * depth * 12
        row = candidates.add(
            self.session,
            self.search,
            number,
            family,
            spec,
            point={}
            if baseline
            else {"family": family, f"{family}.depth": depth, f"{family}.embed_dim": width},
            analysis={"params": size, "flops": 34 * size, "tokens": 16},
            name=(self.hostile or "resnet") if baseline else None,
        )
        row.state = state
        if state != "proposed":
            self._measure(row, width, depth)
        if state == "rejected":
            reason = f"latency_ms {row.measured['latency_ms']:.4g} is above its limit 1.2 (1.5x resnet)"
            self._event("rejected", reason, number)
            row.reason = reason
        if state == "failed":
            reason = f"loss is not finite in epoch 2 {self.hostile}"
            self._event("failed", reason, number)
            row.reason = reason
        rungs = {"finished": (4, 12), "stopped": (4,), "waiting": (4,)}.get(state, ())
        for index, rung in enumerate(rungs):
            self._train(row, index, rung, 1 + (rungs[index - 1] if index else 0), width, depth)

    def _measure(self, row: Any, width: int, depth: int) -> None:
        from search.store.write import candidates, results
        from workers.job import Measurement

        latency = 0.1 + 0.012 * width + 0.05 * depth * (1 + 0.1 * self.rng.random())
        attempt = self._attempt(row, "measure", None, (0, 0), "done")
        measurement = Measurement(
            protocol="eager-1",
            device_id=f"cpu:0123{self.hostile}",
            device_name=f"Example CPU{self.hostile}",
            threads=1,
            runtime="torch",
            precision="fp32",
            batch_size=1,
            latency_ms=latency,
            latency_ms_low=latency * 0.98,
            latency_ms_high=latency * 1.03,
            latency_ms_p95=latency * 1.4,
            latency_ms_p99=None,
            latency_ms_spread=0.06,
            latency_relative_error=0.008,
            num_samples=400 + self.rng.randrange(300),
            stopped_by="relative_error",
            throughput=9000 / latency,
            throughput_batch_size=64,
            peak_memory_mb=3.5 + width / 20,
            model_mb=width**2 * depth * 48 / 1e6,
            build_seconds=0.1,
            first_call_ms=9.0,
            seconds=0.8,
            flags=("contended",) if row.number == 3 else (),
        )
        results.add_measurement(self.session, row, measurement, attempt)
        candidates.learn(
            row,
            {
                name: getattr(measurement, name)
                for name in ("latency_ms", "latency_ms_p95", "throughput", "peak_memory_mb", "model_mb")
            },
            {"latency_ms": (measurement.latency_ms_low, measurement.latency_ms_high)},
        )

    def _train(self, row: Any, rung: int, last: int, first: int, width: int, depth: int) -> None:
        from search.store.write import candidates, jobs, results
        from workers.job import CheckpointRef, EpochReport, Evaluation

        attempt = self._attempt(row, "train", rung, (first, last), "done")
        best = 0.975 - 0.5 / math.sqrt(width * depth) + 0.02 * self.rng.random()
        low = high = accuracy = 0.0
        for epoch in range(first, last + 1):
            accuracy = best - 0.6 * math.exp(-epoch / 3.0)
            half = 1.96 * math.sqrt(accuracy * (1 - accuracy) / self.VAL_IMAGES)
            low, high = accuracy - half, min(1.0, accuracy + half)
            report = EpochReport(
                attempt.job_id, 1, 1, epoch, 2.3 / epoch, 2.2 / epoch, accuracy, low, high, 1e-3, 0.4
            )
            jobs.add_epoch(self.session, row.id, attempt, report)
        names = tuple(f"{digit}{self.hostile}" for digit in range(10))
        evaluation = Evaluation(
            split="val",
            epoch=last,
            num_images=self.VAL_IMAGES,
            accuracy=accuracy,
            accuracy_low=low,
            accuracy_high=high,
            loss=0.3,
            class_names=names,
            recall=(accuracy,) * 10,
            recall_low=(low,) * 10,
            recall_high=(high,) * 10,
            class_counts=(self.VAL_IMAGES // 10,) * 10,
            calibration_error=0.04,
            confusions=((3, 8, 5), (9, 4, 2)),
        )
        results.add_evaluation(self.session, row, attempt, evaluation)
        path = f"checkpoints/{row.number}/1/{last}.safetensors"
        results.add_checkpoint(self.session, row, attempt, CheckpointRef(path, last, "ab" * 32, 4096))
        candidates.learn(row, {"accuracy": accuracy}, {"accuracy": (low, high)})
        row.by_rung = dict(row.by_rung) | {str(rung): {"accuracy": accuracy}}
        row.rung, row.epoch = rung, last

    def _attempt(self, row: Any, kind: str, rung: int | None, epochs: tuple[int, int], state: str) -> Any:
        from search.store.write import jobs
        from workers.job import Kind

        job = jobs.add(self.session, row, Kind(kind), rung=rung, epochs=epochs)
        attempt = jobs.open_attempt(self.session, job, 1)
        attempt.state = job.state = state
        attempt.host, attempt.pid, attempt.seconds = f"host{self.hostile}", 4242, 1.5
        return attempt

    def _event(self, kind: str, text: str, candidate: int | None = None) -> None:
        from search.store.write import results

        results.add_event(self.session, self.search, kind, text, candidate)
