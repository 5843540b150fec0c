"""How fast a search trains: its epochs beside a bare loop of the same network and optimizer, and beside a DataLoader.

pytest -s -m benchmark tests/benchmarks/test_training_speed.py

All loops take turns, epoch by epoch, in one process with one thread, and each is judged by its best epoch, in seconds
of the CPU: nothing waits in them, so on a machine with nothing else to do they are the wall clock's. The bare loop has
its batches on the device already, changes no image, clips and averages nothing. The DataLoader changes image by image
on the CPU, in the process that trains, as a worker of a search has one core.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from spaces.registry import make_space
from spaces.spec import ArchSpec, Task
from workers import train
from workers.data.batches import DeviceData, resident
from workers.job import Decision, EpochReport, Job, Kind, Status
from workers.perform import perform
from workers.recipe import compose
from workers.settings import CostSettings, DataSettings, JobSettings, RecipeSettings

pytestmark = pytest.mark.benchmark
FASHION = Path("/usr/share/datasets/fashion-mnist")
CPU = torch.device("cpu")
Batches = Iterable[tuple[Tensor, Tensor]]

DATA = {
    "digits": DataSettings("digits"),
    "fashion": DataSettings("idx", str(FASHION), train_limit=1020, val_limit=180),  # a 50th of all
}
NETWORKS = {
    "middle": {"depth": 4, "heads": 3, "head_width": 24, "mlp_ratio": 2.0, "pooling": "average"},
    "smallest": {"depth": 1, "heads": 1, "head_width": 16, "mlp_ratio": 1.0, "pooling": "average"},
}
PATCHES = {
    ("digits", "middle"): 2,
    ("digits", "smallest"): 4,
    ("fashion", "middle"): 4,
    ("fashion", "smallest"): 14,
}
ROUNDS = {"middle": 4, "smallest": 12}
SHARE_OF_BARE, TIMES_THE_LOADER, SHARE_OF_VALIDATION = 0.9, 2.0, 0.1


class Images(Dataset[tuple[Tensor, int]]):
    """The same images, shifted as by the default recipe, by torchvision and one by one."""

    def __init__(self, data: DeviceData, max_shift: float) -> None:
        pixels = data.splits["train"].pixels.numpy()
        self._images = [Image.fromarray(one[:, :, 0]) for one in pixels]
        self._labels = data.splits["train"].labels.tolist()
        mean, scale = (float(value) / 255 for value in (data.mean.flatten()[0], 1 / data.scale.flatten()[0]))
        shift, side = int(max_shift * data.image_size), data.image_size
        crop = transforms.RandomCrop(side, padding=shift, padding_mode="reflect") if shift else lambda x: x
        self._change: Any = transforms.Compose(
            [crop, transforms.ToTensor(), transforms.Normalize([mean], [scale])]
        )

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self._change(self._images[index]), self._labels[index]


class Clock:
    """CPU seconds of every epoch, by what was done in it."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, list[float]] = defaultdict(list)
        self._since = time.process_time()

    def lap(self, name: str) -> None:
        """What was spent since `resume` was called."""
        self.spent[name].append(time.process_time() - self._since)

    def resume(self) -> None:
        self._since = time.process_time()

    def best(self, name: str) -> float:
        """Of all epochs but the first, which warms up."""
        return min(self.spent[name][1:])

    def timed(self, name: str, work: Callable[[], object]) -> None:
        started = time.process_time()
        work()
        self.spent[name].append(time.process_time() - started)

    def watching(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            started = time.process_time()
            found = call(*args, **kwargs)
            self.spent[name].append(time.process_time() - started)
            return found

        return watched

    def feeding(self, name: str, call: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def watched(*args: Any, **kwargs: Any) -> Iterator[Any]:
            self.spent[name].append(0.0)
            started = time.process_time()
            for batch in call(*args, **kwargs):
                self.spent[name][-1] += time.process_time() - started
                yield batch
                started = time.process_time()

        return watched


def bare_epoch(training: Any, batches: Batches, smoothing: float) -> None:
    training.model.train()
    for images, labels in batches:
        training.optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(training.model(images), labels, label_smoothing=smoothing).backward()
        training.optimizer.step()


def network(source: str, size: str, data: DeviceData) -> ArchSpec:
    space = make_space(Task(data.image_size, data.channels, len(data.class_names)), "tiny", ["vit"])
    values = NETWORKS[size] | {"patch_size": PATCHES[source, size]}
    return space.spec({"family": "vit", **{f"vit.{name}": value for name, value in values.items()}})


def synthetic(data: DeviceData, batch_size: int) -> list[tuple[Tensor, Tensor]]:
    """As many images in batches of the same sizes."""
    shape = (data.channels, data.image_size, data.image_size)
    count = len(data.splits["train"])
    sizes = [len(part) for part in np.array_split(np.arange(count), -(-count // batch_size))]
    return [(torch.randn(size, *shape), torch.randint(len(data.class_names), (size,))) for size in sizes]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("size", NETWORKS)
@pytest.mark.parametrize("source", DATA)
def test_epochs_keep_up_with_a_bare_loop_and_batches_come_faster_than_from_a_loader(
    source: str, size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "fashion" and not FASHION.is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path / "runtime"))
    recipe = RecipeSettings(epochs=ROUNDS[size])
    data, clock = resident(DATA[source], CPU), Clock()
    spec = network(source, size, data)
    bare = compose(spec, recipe, 10, 0, CPU)
    batches = synthetic(data, recipe.batch_size)
    loader = DataLoader(Images(data, 0.1), batch_size=recipe.batch_size, shuffle=True)

    def take_turns(report: EpochReport) -> Decision:
        clock.lap("ours")
        assert report.pause_seconds < 0.1
        clock.timed("bare", lambda: bare_epoch(bare, batches, 0.1))
        clock.timed("loader", lambda: bare_epoch(bare, loader, 0.1))
        clock.timed("loader's batches", lambda: sum(len(labels) for _, labels in loader))
        clock.resume()
        return Decision.CONTINUE

    monkeypatch.setattr(train, "training_batches", clock.feeding("our batches", train.training_batches))
    monkeypatch.setattr(train, "evaluate", clock.watching("validation", train.evaluate))
    settings = JobSettings(DATA[source], recipe, CostSettings(device="cpu"))
    job = Job(1, 1, 1, Kind.TRAIN, "speed", 1, spec, settings, str(tmp_path), 1, recipe.epochs)
    outcome = perform(job, take_turns)
    assert outcome.status is Status.DONE, outcome.reason

    seconds = {name: clock.best(name) for name in clock.spent}
    trained = seconds["ours"] - seconds["validation"]
    count = len(data.splits["train"])
    print(f"\n{source}, {data.image_size} px, {size} vit, {count} images")
    for name, value in (*seconds.items(), ("ours without validation", trained)):
        print(f"  {name:<24} {count / value:>10,.0f} images/s")
    share = seconds["bare"] / trained
    feeds = seconds["loader's batches"] / seconds["our batches"]
    validation = seconds["validation"] / seconds["ours"]
    print(
        f"  ours / bare {share:.3f}, batches ours / loader {feeds:.1f}, validation {validation:.1%} of an epoch"
    )
    print(f"  epochs ours / through a loader {seconds['loader'] / trained:.2f}")
    if size == "middle":
        assert share > SHARE_OF_BARE
    assert feeds > TIMES_THE_LOADER
    assert validation < SHARE_OF_VALIDATION
