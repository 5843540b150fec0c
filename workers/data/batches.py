"""Images on the device once, as bytes; batches are gathered, augmented, normalised and resized there."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from workers.data import dataset
from workers.data.dataset import Dataset
from workers.data.listing import Beat
from workers.data.resizing import resized
from workers.settings import DataSettings

Batch = tuple[Tensor, Tensor]
"""images: float32 [b, channels, input_size, input_size], normalised. labels: int64 [b]."""


@dataclass(frozen=True)
class DeviceSplit:
    """pixels: uint8 [n, size, size, channels]. labels: int64 [n]."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DeviceData:
    """All splits of a data set on one device. mean, scale: [channels, 1, 1], of the train split's bytes:
    a normalised image is (pixels - mean) * scale. image_size: side of the pixels. input_size: side of what batches
    hold, for networks that take another; see `at`."""

    splits: dict[str, DeviceSplit]
    mean: Tensor
    scale: Tensor
    class_names: tuple[str, ...]
    image_size: int
    input_size: int
    channels: int
    digest: str
    device: torch.device

    def at(self, input_size: int) -> DeviceData:
        """The same images, brought to another side as the last thing before a network sees them."""
        return replace(self, input_size=input_size)

    @property
    def normalisation(self) -> dict[str, str]:
        """mean and scale as JSON lists of numbers, for the checkpoints of what is trained on these images."""
        return {name: json.dumps(getattr(self, name).flatten().tolist()) for name in ("mean", "scale")}

    def normalise(self, pixels: Tensor) -> Tensor:
        """uint8 [b, size, size, channels] to float32 [b, channels, input_size, input_size] of mean 0 and
        deviation 1."""
        images = pixels.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        return resized(images.sub_(self.mean).mul_(self.scale), self.input_size)


@dataclass(frozen=True)
class Augment:
    """Changes drawn for every image by itself. max_shift: pixels, reflected at the border. flip: left to right."""

    max_shift: int = 0
    flip: bool = False

    @classmethod
    def of(cls, settings: DataSettings, image_size: int, max_shift: float) -> Augment:
        """max_shift: share of the side, rounded down to pixels. Flips where the settings' symmetries allow them."""
        flip = settings.symmetries == "horizontal_flip" or (
            settings.symmetries == "auto" and settings.source == "folder"
        )
        return cls(max_shift=int(max_shift * image_size), flip=flip)


_resident: dict[str, DeviceData] = {}


def resident(settings: DataSettings, device: torch.device, beat: Beat = lambda: None) -> DeviceData:
    """The images of `settings` on `device`; those of the last call again where nothing has changed since.

    The source is listed anew every time, so changed files are noticed. Raises DataError.
    """
    found = dataset.index(settings)
    held = _resident.get("data")
    if held is None or held.digest != found.digest or held.device != device:
        _resident.clear()
        _resident["data"] = held = to_device(dataset.decode(found, beat), device)
    return held


def to_device(data: Dataset, device: torch.device) -> DeviceData:
    """Copies every split to the device and takes mean and deviation of the train split."""
    mean, deviation = _moments(data.splits["train"].pixels)
    return DeviceData(
        splits={
            name: DeviceSplit(
                torch.from_numpy(images.pixels).to(device), torch.from_numpy(images.labels).to(device)
            )
            for name, images in data.splits.items()
        },
        mean=torch.tensor(mean, dtype=torch.float32, device=device)[:, None, None],
        scale=torch.tensor(1 / deviation, dtype=torch.float32, device=device)[:, None, None],
        class_names=data.class_names,
        image_size=data.image_size,
        input_size=data.image_size,
        channels=data.channels,
        digest=data.digest,
        device=device,
    )


def steps_per_epoch(num_images: int, batch_size: int) -> int:
    """Optimizer steps of an epoch. The images are dealt out evenly, so that no step sees a single image: batch
    normalisation cannot work on one."""
    return max(1, min(math.ceil(num_images / batch_size), num_images // 2))


def training_batches(data: DeviceData, batch_size: int, augment: Augment, seed: int) -> Iterator[Batch]:
    """One epoch of the train split in an order drawn from `seed`, every image shifted and flipped by itself.

    Every image comes once, in `steps_per_epoch` batches whose sizes differ by one at most.
    """
    split = data.splits["train"]
    generator = torch.Generator(data.device).manual_seed(seed)
    draw = {"generator": generator, "device": data.device}
    order = torch.randperm(len(split), **draw)
    limit = augment.max_shift
    shifts = torch.randint(-limit, limit + 1, (len(split), 2, 1), **draw) if limit else None
    flips = torch.rand((len(split), 1), **draw) < 0.5 if augment.flip else None
    for chosen in torch.tensor_split(order, steps_per_epoch(len(split), batch_size)):
        if shifts is None and flips is None:
            pixels = split.pixels[chosen]
        else:
            pixels = _gather(
                split.pixels,
                chosen,
                None if shifts is None else shifts[chosen],
                None if flips is None else flips[chosen],
            )
        yield data.normalise(pixels), split.labels[chosen]


def evaluation_batches(data: DeviceData, split: str, batch_size: int) -> Iterator[Batch]:
    """All images of a split in their order, unchanged but for the normalisation."""
    chosen = data.splits[split]
    for start in range(0, len(chosen), batch_size):
        end = start + batch_size
        yield data.normalise(chosen.pixels[start:end]), chosen.labels[start:end]


def _gather(pixels: Tensor, chosen: Tensor, shifts: Tensor | None, flips: Tensor | None) -> Tensor:
    """Picks images, moves each by its shift (rows, columns) and mirrors it where its flip says, in one gather."""
    size = pixels.shape[1]
    rows = columns = torch.arange(size, device=pixels.device)[None]
    if shifts is not None:
        rows, columns = _reflect(rows + shifts[:, 0], size), _reflect(columns + shifts[:, 1], size)
    if flips is not None:
        columns = torch.where(flips, size - 1 - columns, columns)
    return pixels[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]


def _reflect(index: Tensor, size: int) -> Tensor:
    return (size - 1) - ((size - 1) - index.abs()).abs()


def _moments(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation a channel, exact, from histograms; a constant channel has deviation 1."""
    values = np.arange(256)
    histograms = [np.bincount(pixels[..., c].ravel(), minlength=256) for c in range(pixels.shape[-1])]
    mean = np.array([(h * values).sum() / h.sum() for h in histograms])
    variance = np.array(
        [(h * (values - m) ** 2).sum() / h.sum() for h, m in zip(histograms, mean, strict=True)]
    )
    return mean, np.where(variance > 0, np.sqrt(variance), 1.0)
