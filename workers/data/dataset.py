"""DataSettings -> images by split, in memory or mapped from the cache. Without torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workers import memory_limit
from workers.data import cache, decoded, splits
from workers.data.listing import SPLITS, Beat, DataError, Listing
from workers.data.sources import digits, folder, huggingface, idx, npz, torchvision, webdataset
from workers.settings import DataSettings

Read = Callable[[DataSettings, Beat], Listing]
SOURCES: dict[str, Read] = {
    "digits": digits.read,
    "idx": idx.read,
    "folder": folder.read,
    "npz": npz.read,
    "torchvision": torchvision.read,
    "huggingface": huggingface.read,
    "webdataset": webdataset.read,
}


@dataclass(frozen=True)
class Images:
    """One split. pixels: uint8 [n, image_size, image_size, channels]. labels: int64 [n]."""

    pixels: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Dataset:
    """Decoded images of all splits (`train`, `val`, `test`). digest: see `splits.digest`.

    cached: the file of the cache that the pixels are mapped from, read-only; None where they are in memory.
    mended: a damaged file of the cache that was made again, and what was wrong with it.
    uncached: why they are in memory though decoding them takes long."""

    image_size: int
    channels: int
    class_names: tuple[str, ...]
    splits: dict[str, Images]
    digest: str
    cached: Path | None = None
    mended: str | None = None
    uncached: str | None = None


@dataclass(frozen=True)
class Index:
    """A source listed and split, nothing decoded yet."""

    listing: Listing
    splits: splits.Splits
    digest: str

    @property
    def shape(self) -> decoded.Shape:
        """Of all decoded images of all splits."""
        listing = self.listing
        count = sum(len(positions) for positions in self.splits.values())
        return (count, listing.image_size, listing.image_size, listing.channels)

    @property
    def num_bytes(self) -> int:
        """Of all decoded images of all splits."""
        return int(np.prod(self.shape))


def index(settings: DataSettings, beat: Beat = lambda: None) -> Index:
    """Lists and splits the images of `settings`; `beat` is called every few files. Raises DataError."""
    listing = SOURCES[settings.source](settings, beat)
    assigned = splits.assign(listing, settings)
    return Index(listing, assigned, splits.digest(listing, assigned))


def load(settings: DataSettings, beat: Beat = lambda: None) -> Dataset:
    """Decodes the images of `settings`; `beat` is called every few images. Raises DataError."""
    return decode(index(settings, beat), beat)


def decode(source: Index, beat: Beat = lambda: None) -> Dataset:
    """Decodes what `index` found, or maps what is decoded already. Raises DataError."""
    found, why_not = _mapped(source, beat)
    if found is None:
        _check_room(source)
    pixels = _in_memory(source, beat) if found is None else found.pixels
    listing = source.listing
    ends = np.cumsum([len(source.splits[name]) for name in SPLITS])[:-1]
    parts = dict(zip(SPLITS, np.split(pixels, ends), strict=True))
    return Dataset(
        image_size=listing.image_size,
        channels=listing.channels,
        class_names=listing.class_names,
        splits={name: Images(parts[name], listing.labels[source.splits[name]]) for name in SPLITS},
        digest=source.digest,
        cached=None if found is None else found.path,
        mended=None if found is None else found.mended,
        uncached=why_not,
    )


def _mapped(source: Index, beat: Beat) -> tuple[decoded.Mapped | None, str | None]:
    """None where nothing would be gained, or where they cannot be kept, and then why."""
    listing = source.listing
    if not listing.is_costly:
        return None, None
    path = decoded.path_for(source.digest, listing.image_size)
    if path is None:
        return (
            None,
            None if cache.is_off() else "the user's cache folder cannot be used; name one in PARETOVIT_CACHE",
        )
    indices = np.concatenate([source.splits[name] for name in SPLITS])
    fits = source.num_bytes <= memory_limit.free_bytes()
    try:
        return decoded.mapped(path, source.shape, indices, listing.decode, beat, whole=fits), None
    except decoded.NotKept as error:
        return None, str(error)


def _in_memory(source: Index, beat: Beat) -> np.ndarray:
    parts = [source.listing.decode(source.splits[name], beat) for name in SPLITS]
    return np.concatenate(parts)


def _check_room(source: Index) -> None:
    room = memory_limit.job_bytes()
    if source.num_bytes > room:
        raise DataError(
            f"data.image_size: {source.listing.image_size}: the decoded images take {source.num_bytes / 1e9:,.1f} GB, "
            f"and a job may take {room / 1e9:,.1f} GB; lower it, or give PARETOVIT_CACHE a folder with more room"
        )
