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


def median_size(sizes: Sequence[tuple[int, int]]) -> str:
    """`500 x 375 px`."""
    return " x ".join(f"{median(side):.0f}" for side in zip(*sizes, strict=True)) + " px"


def usual_size(sizes: Sequence[tuple[int, int]], largest: int) -> int:
    """The largest of `USUAL_SIZES`, `largest` at most, that the median picture's short side still fills."""
    short = median(min(size) for size in sizes)
    return max(size for size in USUAL_SIZES if size == USUAL_SIZES[0] or (size <= short and size <= largest))


def _size(path: Path) -> tuple[int, int] | None:
    try:
        with Image.open(path) as image:
            return image.size
    except pixels.UNREADABLE:
        return None
