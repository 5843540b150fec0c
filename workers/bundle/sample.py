"""The images that an exported model brings along, to be checked with: of the validation split, where they are there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from workers.bundle.request import Source
from workers.data import dataset
from workers.data.batches import DeviceData, to_device
from workers.data.dataset import Index
from workers.data.listing import DataError
from workers.errors import ExportError

MAX_IMAGES = 32
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Sample:
    """pixels: uint8 [n, image_size, image_size, channels], n from 1 to 32. missing: why these are not validation
    images; None where they are. data: knows how images were normalised in training; holds none itself."""

    pixels: np.ndarray
    data: DeviceData
    missing: str | None = None

    @property
    def words(self) -> str:
        """What the images are."""
        count = len(self.pixels)
        return f"{count} {'noise' if self.missing else 'validation'} image{'' if count == 1 else 's'}"


def take(source: Source, facts: Mapping[str, str], images: bool = True) -> Sample:
    """Validation images, spread over their split; noise of the same mean and deviation where those are gone, or are not
    to be taken (`images`).

    facts: a checkpoint's metadata, which says in `mean` and `scale` how images were normalised. One of an older
    version does not: then the training images are needed. Raises ExportError where these are gone or have changed.
    """
    is_known = "mean" in facts and "scale" in facts
    found, missing = _listed(source) if images or not is_known else (None, "")
    data = _normalisation(source, facts, found, missing)
    if not images:
        missing = "no images were to be brought along"
    elif found is not None:
        try:
            return Sample(_validation(found), data)
        except (DataError, OSError) as error:
            missing = str(error)
    return Sample(_noise(data), data, missing)


def _listed(source: Source) -> tuple[Index | None, str]:
    """The images that the model was trained on, or why they are not to be had."""
    try:
        found = dataset.index(source.settings)
    except (DataError, OSError) as error:
        return None, str(error)
    if found.digest != source.digest:
        return None, "the images have changed since the search began"
    return found, ""


def _normalisation(source: Source, facts: Mapping[str, str], found: Index | None, missing: str) -> DeviceData:
    if "mean" not in facts or "scale" not in facts:
        if found is None:
            raise ExportError(
                f"this older checkpoint does not say how images were normalised, and they are not here: {missing}"
            )
        measured = to_device(dataset.decode(found), CPU)
        facts = measured.normalisation
    mean, scale = (
        torch.tensor(json.loads(facts[name]), dtype=torch.float32)[:, None, None]
        for name in ("mean", "scale")
    )
    return DeviceData(
        splits={},
        mean=mean,
        scale=scale,
        class_names=source.class_names,
        image_size=source.image_size,
        input_size=source.image_size,
        channels=source.channels,
        digest=source.digest,
        device=CPU,
    )


def _validation(found: Index) -> np.ndarray:
    """Spread over the split, which is ordered by class where the source is."""
    positions = found.splits["val"]
    chosen = np.unique(np.linspace(0, len(positions) - 1, MAX_IMAGES).astype(int))
    return found.listing.decode(positions[chosen], lambda: None)


def _noise(data: DeviceData) -> np.ndarray:
    shape = (MAX_IMAGES, data.image_size, data.image_size, data.channels)
    mean, deviation = data.mean.flatten().numpy(), 1 / data.scale.flatten().numpy()
    return np.random.default_rng(0).normal(mean, deviation, shape).round().clip(0, 255).astype(np.uint8)
