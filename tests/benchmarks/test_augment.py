"""What changing images on the device costs beside a training step: images a second of CPU time, one thread.

pytest -s -m benchmark tests/benchmarks/test_augment.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

from spaces import models
from spaces.registry import make_space
from spaces.space import FAMILY
from spaces.spec import Task
from workers.data.batches import Augment, DeviceData, to_device, training_batches
from workers.data.dataset import Dataset, Images
from workers.knobs import DEFAULTS
from workers.settings import DataSettings

pytestmark = pytest.mark.benchmark
BATCH = 128
POINTS = {
    28: {"patch_size": 7, "depth": 4, "heads": 2, "head_width": 24, "mlp_ratio": 3.0},
    64: {"patch_size": 8, "depth": 4, "heads": 2, "head_width": 32, "mlp_ratio": 3.0},
}


def device_data(side: int, channels: int) -> DeviceData:
    pixels = np.random.default_rng(0).integers(0, 256, (BATCH, side, side, channels), np.uint8)
    images = Images(pixels, np.arange(BATCH) % 10)
    splits = dict.fromkeys(("train", "val", "test"), images)
    return to_device(Dataset(side, channels, tuple("0123456789"), splits, "d"), torch.device("cpu"))


def milliseconds(work: Callable[[], None]) -> float:
    """Of CPU time, the least of 15 calls."""
    work()
    found = []
    for _ in range(15):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found) * 1e3


@pytest.mark.parametrize(("side", "channels"), [(28, 1), (64, 3)])
def test_images_a_second_beside_a_training_step(side: int, channels: int) -> None:
    torch.set_num_threads(1)
    data, settings = device_data(side, channels), DataSettings("folder", path="x")
    for name in ("plain", "deit"):
        augment = Augment.of(settings, side, DEFAULTS[name], 10)
        spent = milliseconds(lambda augment=augment: next(training_batches(data, BATCH, augment, 0)) and None)
        print(f"{side} px, {channels} channels, {name}: {BATCH / spent * 1e3:,.0f} images/s ({spent:.1f} ms)")
    space = make_space(Task(side, channels, 10), "tiny" if side < 64 else "small", ["vit"], {})
    point = {FAMILY: "vit", "vit.pooling": "average", **{f"vit.{k}": v for k, v in POINTS[side].items()}}
    model = models.build(space.spec(point))
    images, targets = next(training_batches(data, BATCH, Augment(), 0))

    def step() -> None:
        functional.cross_entropy(model(images), targets).backward()

    spent = milliseconds(step)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(
        f"{side} px, a step of a ViT of {count:,} parameters: {BATCH / spent * 1e3:,.0f} images/s ({spent:.1f} ms)"
    )
