"""DataSettings -> images in memory, by split. Without torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workers.data import splits
from workers.data.listing import SPLITS, Beat, Listing
from workers.data.sources import digits, folder, idx
from workers.settings import DataSettings

SOURCES = {"digits": digits.read, "idx": idx.read, "folder": folder.read}


@dataclass(frozen=True)
class Images:
    """One split. pixels: uint8 [n, image_size, image_size, channels]. labels: int64 [n]."""

    pixels: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Dataset:
    """Decoded images of all splits (`train`, `val`, `test`). digest: see `splits.digest`."""

    image_size: int
    channels: int
    class_names: tuple[str, ...]
    splits: dict[str, Images]
    digest: str


@dataclass(frozen=True)
class Index:
    """A source listed and split, nothing decoded yet."""

    listing: Listing
    splits: splits.Splits
    digest: str


def index(settings: DataSettings) -> Index:
    """Lists and splits the images of `settings`. Raises DataError."""
    listing = SOURCES[settings.source](settings)
    assigned = splits.assign(listing, settings)
    return Index(listing, assigned, splits.digest(listing, assigned))


def load(settings: DataSettings, beat: Beat = lambda: None) -> Dataset:
    """Decodes the images of `settings`; `beat` is called every few images. Raises DataError."""
    return decode(index(settings), beat)


def decode(source: Index, beat: Beat = lambda: None) -> Dataset:
    """Decodes what `index` found."""
    listing = source.listing
    return Dataset(
        image_size=listing.image_size,
        channels=listing.channels,
        class_names=listing.class_names,
        splits={
            name: Images(listing.decode(source.splits[name], beat), listing.labels[source.splits[name]])
            for name in SPLITS
        },
        digest=source.digest,
    )
