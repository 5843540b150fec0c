"""Images on the device once, as bytes; batches are gathered, augmented, normalised and resized there."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from workers.augment import RandAugment
from workers.data import dataset, placing
from workers.data.dataset import Dataset
from workers.data.listing import Beat
from workers.data.resizing import resized
from workers.settings import DataSettings

Batch = tuple[Tensor, Tensor]
"""images: float32 [b, channels, input_size, input_size], normalised. labels: int64 [b]."""


@dataclass(frozen=True)
class DeviceSplit:
    """pixels: uint8 [n, size, size, channels], on the device of the labels, or on the host where they do not fit.
    labels: int64 [n]."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, chosen: Tensor | slice) -> Tensor:
        """Pixels of some images, on the device of the labels."""
        return placing.picked(self.pixels, chosen, self.labels.device)


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
    found = dataset.index(settings, beat)
    held = _resident.get("data")
    if held is None or held.digest != found.digest or held.device != device:
        _resident.clear()
        _resident["data"] = held = to_device(dataset.decode(found, beat), device)
    return held


def to_device(data: Dataset, device: torch.device, beat: Beat = lambda: None) -> DeviceData:
    """Brings every split to the device, where they fit, and takes mean and deviation of the train split."""
    mean, deviation = placing.moments(data.splits["train"].pixels, beat)
    stays = placing.fits(sum(images.pixels.nbytes for images in data.splits.values()), device)
    return DeviceData(
        splits={
            name: DeviceSplit(
                placing.placed(images.pixels, device, stays), torch.from_numpy(images.labels).to(device)
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
            pixels = split.take(chosen)
        else:
            pixels = _gather(
                split,
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
        yield data.normalise(chosen.take(slice(start, end))), chosen.labels[start:end]


def _gather(split: DeviceSplit, chosen: Tensor, shifts: Tensor | None, flips: Tensor | None) -> Tensor:
    """Picks images, moves each by its shift (rows, columns) and mirrors it where its flip says, in one gather."""
    pixels = split.pixels
    if pixels.device != chosen.device:
        pixels, chosen = split.take(chosen), torch.arange(len(chosen), device=chosen.device)
    size = pixels.shape[1]
    rows = columns = torch.arange(size, device=pixels.device)[None]
    if shifts is not None:
        rows, columns = _reflect(rows + shifts[:, 0], size), _reflect(columns + shifts[:, 1], size)
    if flips is not None:
        columns = torch.where(flips, size - 1 - columns, columns)
    return pixels[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]


def _planes(pixels: Tensor) -> Tensor:
    """uint8 [b, size, size, channels] to float32 [b, channels, size, size]."""
    return pixels.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)


def _reflect(index: Tensor, size: int) -> Tensor:
    return (size - 1) - ((size - 1) - index.abs()).abs()
