"""How large a user's pictures are, read off a sample of their headers; what size to bring them to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from PIL import Image

from workers.data import pixels
from workers.data.sources import folder

USUAL_SIZES = (32, 48, 64, 96, 128)
"""Sides in pixels that every family has patches for."""

_MOST = 256


def sample_sizes(root: Path, most: int = _MOST) -> list[tuple[int, int]]:
    """(width, height) in pixels of up to `most` pictures below a folder, spread evenly over it; what cannot be read is
    left out."""
    paths = folder.images(root)
    step = max(1, len(paths) // most)
    return [size for path in paths[::step][:most] if (size := _size(path)) is not None]


def median_side(sizes: Sequence[tuple[int, int]]) -> float:
    """Pixels of the short side of the picture in the middle."""
    return median(min(size) for size in sizes)


def usual_size(sizes: Sequence[tuple[int, int]], largest: int) -> int:
    """The largest of `USUAL_SIZES`, `largest` at most, that the median of the short sides still fills."""
    short = median_side(sizes)
    return max(size for size in USUAL_SIZES if size == USUAL_SIZES[0] or (size <= short and size <= largest))


def _size(path: Path) -> tuple[int, int] | None:
    try:
        with Image.open(path) as image:
            return image.size
    except pixels.UNREADABLE:
        return None
