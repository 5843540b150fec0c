"""Images that lie in two splits: the same pixels, or the same picture stored again with other bytes.

Exact ones have one digest of their pixels. For near ones every picture becomes a perceptual hash: its grey means on a
grid of 16 x 16, of mean 0 and length 1. Two are one picture where their hashes correlate by 0.998 or more. Re-encoding,
resizing and a change of brightness or contrast pass that; cropping or turning does not. Candidates come from the first
few principal components, in which two vectors are never farther apart than they are: so none is missed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workers.data.listing import SPLITS, Beat

SMALLEST = 16
"""Side in pixels under which two pictures of one kind cannot be told from one picture stored twice."""
CORRELATION = 0.998
_GRID = 16
_COMPONENTS = 8
_BRIGHTNESS = (0.299, 0.587, 0.114)
_FITTED = 10_000
_BLOCK_IMAGES = 4096
_QUERIES = 64
_RADIUS = (2 - 2 * CORRELATION) ** 0.5


@dataclass(frozen=True)
class Overlap:
    """Images of split `inside` that are in split `other` too. exact, near: how many of the num_images looked at."""

    inside: str
    other: str
    exact: int
    near: int
    num_images: int

    @property
    def share(self) -> float:
        return (self.exact + self.near) / self.num_images if self.num_images else 0.0


@dataclass(frozen=True)
class _Reduced:
    """digests: of the pixels, 16 bytes each. grids: float32 [n, 256], of mean 0 and length 1; 0 for a flat colour;
    [0, 256] where pictures are too small."""

    digests: list[bytes]
    grids: np.ndarray


def overlaps(pixels: Mapping[str, np.ndarray], beat: Beat = lambda: None) -> tuple[Overlap, ...]:
    """Of val with train, test with train and test with val; pixels: of each split, uint8 [n, side, side, channels].

    Near ones are not looked for in pictures under SMALLEST pixels. About 2 s for 70,000 images of 28 pixels on a core.
    """
    reduced = {name: _reduce(pixels[name], beat) for name in SPLITS}
    pairs = (("val", "train"), ("test", "train"), ("test", "val"))
    return tuple(_overlap(inside, other, reduced, beat) for inside, other in pairs)


def _overlap(inside: str, other: str, reduced: Mapping[str, _Reduced], beat: Beat) -> Overlap:
    mine, theirs = reduced[inside], reduced[other]
    there = set(theirs.digests)
    is_exact = np.array([digest in there for digest in mine.digests], bool)
    near = 0
    if len(mine.grids) and len(theirs.grids):
        near = _count_near(mine.grids[~is_exact], theirs.grids, beat)
    return Overlap(inside, other, int(is_exact.sum()), near, len(mine.digests))


def _count_near(mine: np.ndarray, theirs: np.ndarray, beat: Beat) -> int:
    """How many rows of `mine` have one in `theirs` within _RADIUS."""
    basis = _components(theirs)
    short, others = mine @ basis, theirs @ basis
    order, rank = np.argsort(short[:, 0]), np.argsort(others[:, 0])
    others = others[rank]
    lengths = (others**2).sum(1)
    count = 0
    for start in range(0, len(mine), _QUERIES):
        block = order[start : start + _QUERIES]
        low, high = short[block[0], 0] - _RADIUS, short[block[-1], 0] + _RADIUS
        window = slice(np.searchsorted(others[:, 0], low), np.searchsorted(others[:, 0], high, "right"))
        distances = (
            (short[block] ** 2).sum(1)[:, None] + lengths[window] - 2 * short[block] @ others[window].T
        )
        first, second = np.nonzero(distances <= _RADIUS**2 + 1e-5)
        alike = np.einsum("ij,ij->i", mine[block[first]], theirs[rank[window][second]]) >= CORRELATION
        count += len(np.unique(first[alike]))
        beat()
    return count


def _components(grids: np.ndarray) -> np.ndarray:
    """float32 [256, 8]: the orthonormal directions along which hashes differ most."""
    sample = grids[:: -(-len(grids) // _FITTED)].astype(np.float64)
    sample -= sample.mean(0)
    _, vectors = np.linalg.eigh(sample.T @ sample)
    return vectors[:, ::-1][:, :_COMPONENTS].astype(np.float32)


def _reduce(pixels: np.ndarray, beat: Beat) -> _Reduced:
    side = pixels.shape[1]
    digests: list[bytes] = []
    grids = [np.empty((0, _GRID * _GRID), np.float32)]
    shares = _shares(side)
    for start in range(0, len(pixels), _BLOCK_IMAGES):
        block = np.ascontiguousarray(pixels[start : start + _BLOCK_IMAGES])
        digests += [hashlib.blake2b(image.data, digest_size=16).digest() for image in block]
        if side >= SMALLEST:
            grids.append(_standardised(shares @ _grey(block) @ shares.T))
        beat()
    return _Reduced(digests, np.concatenate(grids))


def _grey(pixels: np.ndarray) -> np.ndarray:
    """float32 [n, side, side]: the brightness, which JPEG keeps better than colours (weights of ITU-R BT.601)."""
    if pixels.shape[-1] != len(_BRIGHTNESS):
        return pixels.mean(-1, dtype=np.float32)
    return pixels.astype(np.float32) @ np.array(_BRIGHTNESS, np.float32)


def _shares(side: int) -> np.ndarray:
    """float32 [16, side]: how much of every pixel lies in each of 16 equal parts; rows sum to 1."""
    edges = np.linspace(0, side, _GRID + 1)
    low, high = edges[:-1, None], edges[1:, None]
    pixel = np.arange(side)
    covered = np.clip(np.minimum(high, pixel + 1) - np.maximum(low, pixel), 0, None)
    return (covered / covered.sum(1, keepdims=True)).astype(np.float32)


def _standardised(grids: np.ndarray) -> np.ndarray:
    flat = grids.reshape(len(grids), -1)
    flat = flat - flat.mean(1, keepdims=True)
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    return np.where(length > _GRID, flat / np.maximum(length, 1e-9), 0).astype(np.float32)
