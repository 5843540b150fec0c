"""What a search has to know about its images before it starts. Without torch."""

from __future__ import annotations

from dataclasses import dataclass

from workers.data.dataset import Index, index
from workers.settings import DataSettings


@dataclass(frozen=True)
class DataSummary:
    """image_size: pixels a side. channels: 1 or 3. num_images: by split (`train`, `val`, `test`).
    digest: the one that `dataset.load` gives for the same images and settings."""

    image_size: int
    channels: int
    class_names: tuple[str, ...]
    num_images: dict[str, int]
    digest: str


def summarise(settings: DataSettings) -> DataSummary:
    """Lists and splits the images without decoding them. Raises DataError naming the remedy."""
    return summary_of(index(settings))


def summary_of(found: Index) -> DataSummary:
    """The same of images that are listed already."""
    return DataSummary(
        image_size=found.listing.image_size,
        channels=found.listing.channels,
        class_names=found.listing.class_names,
        num_images={name: len(positions) for name, positions in found.splits.items()},
        digest=found.digest,
    )
