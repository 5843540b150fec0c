"""Images on the device once, as bytes; batches are gathered, augmented, normalised and resized there."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from workers.augment import RandAugment
from workers.data import ahead, balance, dataset, placing
from workers.data.dataset import Dataset
from workers.data.listing import Beat
from workers.data.resizing import resized
from workers.knobs import Knobs
from workers.mixing import Erasing, Mixing
from workers.settings import DataSettings

Batch = tuple[Tensor, Tensor]
"""images: float32 [b, channels, input_size, input_size], normalised. labels: int64 [b]; where images are mixed,
float32 [b, classes], what each shows how much of."""


@dataclass(frozen=True)
class DeviceSplit:
    """pixels: uint8 [n, size, size, channels], on the device of the labels, or on the host where they do not fit.
    labels: int64 [n]. is_read: whether pixels do not stay in the memory that they are used from."""

    pixels: Tensor
    labels: Tensor
    is_read: bool = False

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DeviceData:
    """All splits of a data set on one device. mean, scale: [channels, 1, 1], of the train split's bytes:
    a normalised image is (pixels - mean) * scale. image_size: side of the pixels. input_size: side of what batches
    hold, for networks that take another; see `at`. balance: `data.balance` of the settings. notes: of how the
    images are kept, where that is not in memory or not as it was left."""

    splits: dict[str, DeviceSplit]
    mean: Tensor
    scale: Tensor
    class_names: tuple[str, ...]
    image_size: int
    input_size: int
    channels: int
    digest: str
    device: torch.device
    balance: str = "none"
    notes: Mapping[str, str] = field(default_factory=dict)

    def at(self, input_size: int) -> DeviceData:
        """The same images, brought to another side as the last thing before a network sees them."""
        return replace(self, input_size=input_size)

    @property
    def class_weights(self) -> Tensor | None:
        """float32 [classes]: what an error on an image of each class weighs; None where all weigh the same."""
        if self.balance != "loss":
            return None
        return balance.class_weights(self.splits["train"].labels, len(self.class_names))

    def order(self, generator: torch.Generator) -> Tensor:
        """Places in the train split, int64: all in an order that is drawn, or some several times to balance."""
        labels = self.splits["train"].labels
        if self.balance == "sampler":
            return balance.evenly_drawn(labels, generator)
        return torch.randperm(len(labels), generator=generator, device=self.device)

    @property
    def normalisation(self) -> dict[str, str]:
        """mean and scale as JSON lists of numbers, for the checkpoints of what is trained on these images."""
        return {name: json.dumps(getattr(self, name).flatten().tolist()) for name in ("mean", "scale")}

    def normalise(self, pixels: Tensor) -> Tensor:
        """uint8 [b, size, size, channels] to float32 [b, channels, input_size, input_size] of mean 0 and
        deviation 1."""
        return resized(self.standardise(_planes(pixels)), self.input_size)

    def standardise(self, images: Tensor) -> Tensor:
        """Values of 0 to 255, float32 [b, channels, size, size], to mean 0 and deviation 1, in place."""
        return images.sub_(self.mean).mul_(self.scale)


@dataclass(frozen=True)
class Augment:
    """Changes drawn for every image by itself. max_shift: pixels, reflected at the border. flip: left to right.
    repeats: how often an image comes in an epoch. The others are done in their order, after shifts and flips."""

    max_shift: int = 0
    flip: bool = False
    repeats: int = 1
    rand_augment: RandAugment | None = None
    erasing: Erasing | None = None
    mixing: Mixing | None = None

    @classmethod
    def of(cls, settings: DataSettings, image_size: int, knobs: Knobs, num_classes: int) -> Augment:
        """What the knobs ask for. Shifts are rounded down to pixels. Flips where the symmetries allow them."""
        flip = settings.symmetries == "horizontal_flip" or (
            settings.symmetries == "auto" and settings.source == "folder"
        )
        magnitude, ops = knobs.rand_augment_magnitude, knobs.rand_augment_ops
        is_mixed = knobs.mixup > 0 or knobs.cutmix > 0
        return cls(
            max_shift=int(knobs.max_shift * image_size),
            flip=flip,
            repeats=knobs.repeated_augmentation,
            rand_augment=RandAugment(magnitude, ops) if ops else None,
            erasing=Erasing(knobs.erasing) if knobs.erasing else None,
            mixing=Mixing(knobs.mixup, knobs.cutmix, num_classes) if is_mixed else None,
        )

    def apply(
        self,
        data: DeviceData,
        pixels: Tensor,
        labels: Tensor,
        rng: np.random.Generator,
        noise: torch.Generator,
    ) -> Batch:
        """A batch of shifted and flipped images, uint8 [b, size, size, channels], changed, normalised and resized."""
        images = _planes(pixels)
        if self.rand_augment is not None:
            images = self.rand_augment(images, data.mean, rng)
        images = data.standardise(images)
        if self.erasing is not None:
            images = self.erasing(images, rng, noise)
        if self.mixing is not None:
            images, labels = self.mixing(images, labels, rng)
        return resized(images, data.input_size), labels


_resident: dict[str, DeviceData] = {}


def resident(settings: DataSettings, device: torch.device, beat: Beat = lambda: None) -> DeviceData:
    """The images of `settings` on `device`; those of the last call again where nothing has changed since.

    The source is listed anew every time, so changed files are noticed. Raises DataError.
    """
    found = dataset.index(settings, beat)
    held = _resident.get("data")
    if held is None or held.digest != found.digest or held.device != device:
        _resident.clear()
        _resident["data"] = held = to_device(dataset.decode(found, beat), device, beat)
    if held.balance != settings.balance:
        _resident["data"] = held = replace(held, balance=settings.balance)
    return held


def to_device(data: Dataset, device: torch.device, beat: Beat = lambda: None) -> DeviceData:
    """Brings every split to the device, where they fit, and takes mean and deviation of the train split."""
    mean, deviation = placing.moments(data.splits["train"].pixels, beat)
    stays = placing.fits(sum(images.pixels.nbytes for images in data.splits.values()), device)
    return DeviceData(
        splits={
            name: DeviceSplit(
                placing.placed(images.pixels, device, stays),
                torch.from_numpy(images.labels).to(device),
                is_read=not stays,
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
        notes=placing.notes(data, stays),
    )


def batches_per_epoch(num_images: int, batch_size: int) -> int:
    """Batches of an epoch. The images are dealt out evenly, so that no step sees a single image: batch
    normalisation cannot work on one."""
    return max(1, min(math.ceil(num_images / batch_size), num_images // 2))


def dealt(data: DeviceData, batch_size: int, seed: int) -> tuple[Tensor, ...]:
    """The places in the train split of the images of each batch that `training_batches` gives without repeats."""
    generator = torch.Generator(data.device).manual_seed(seed)
    order = data.order(generator)
    return torch.tensor_split(order, batches_per_epoch(len(order), batch_size))


def training_batches(data: DeviceData, batch_size: int, augment: Augment, seed: int) -> Iterator[Batch]:
    """One epoch of the train split in an order drawn from `seed`, every image changed by itself.

    Every image comes once, in `batches_per_epoch` batches whose sizes differ by one at most. With repeats, as many come
    all the same: a part of the split, drawn anew for every epoch, each several times in a row (arXiv 1902.05509). With
    balance `sampler`, as many are drawn so that classes are even.
    """
    split = data.splits["train"]
    generator = torch.Generator(data.device).manual_seed(seed)
    rng = np.random.default_rng(seed)
    draw = {"generator": generator, "device": data.device}
    order = data.order(generator)
    limit = augment.max_shift
    shifts = torch.randint(-limit, limit + 1, (len(split), 2, 1), **draw) if limit else None
    flips = torch.rand((len(split), 1), **draw) < 0.5 if augment.flip else None
    is_drawn = data.balance == "sampler"  # an image may come twice, and is then changed otherwise
    changes = torch.arange(len(split), device=data.device) if is_drawn else order
    repeated = order.repeat_interleave(augment.repeats)[: len(split)]
    num_batches = batches_per_epoch(len(split), batch_size)
    dealt_out = torch.tensor_split(repeated, num_batches)
    with closing(_sources(split, dealt_out)) as sources:
        for chosen, places, (source, inside) in zip(
            dealt_out, torch.tensor_split(changes, num_batches), sources, strict=True
        ):
            if shifts is None and flips is None:
                pixels = source[inside]
            else:
                pixels = _gather(
                    source,
                    inside,
                    None if shifts is None else shifts[places],
                    None if flips is None else flips[places],
                )
            yield augment.apply(data, pixels, split.labels[chosen], rng, generator)


def evaluation_batches(data: DeviceData, split: str, batch_size: int) -> Iterator[Batch]:
    """All images of a split in their order, unchanged but for the normalisation."""
    images = data.splits[split]
    parts = [slice(start, start + batch_size) for start in range(0, len(images), batch_size)]
    with closing(_sources(images, parts)) as sources:
        for part, (source, inside) in zip(parts, sources, strict=True):
            yield data.normalise(source[inside]), images.labels[part]


def _sources(
    split: DeviceSplit, chosen: Sequence[Tensor | slice]
) -> Generator[tuple[Tensor, Tensor | slice]]:
    """For every batch, pixels on the device that have its images, and at which places."""
    if not split.is_read:
        yield from ((split.pixels, places) for places in chosen)
        return
    device = split.labels.device
    with closing(ahead.batches(split.pixels, chosen, device)) as read:
        for pixels in read:
            yield pixels, torch.arange(len(pixels), device=device)


def _gather(pixels: Tensor, chosen: Tensor | slice, shifts: Tensor | None, flips: Tensor | None) -> Tensor:
    """Picks images, moves each by its shift (rows, columns) and mirrors it where its flip says, in one gather."""
    assert isinstance(chosen, Tensor)
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
