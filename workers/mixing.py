"""Mixup, cutmix and random erasing of batches on the device, with a share and a box drawn for every image.

Mixup is arXiv 1710.09412, cutmix 1905.04899, random erasing 1708.04896. Shares, boxes and targets are drawn as timm
draws them (`timm.data.mixup.Mixup` in mode `elem`, `timm.data.random_erasing.RandomErasing` in mode `pixel`). Those go
through a batch image by image and draw from Python's and numpy's global generators; here a batch is changed in a few
operations, and draws from a generator that it is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from timm.data.mixup import mixup_target
from torch import Tensor

ERASED = (0.02, 1 / 3)
"""Smallest and largest share of an image that is erased."""
ASPECT = 0.3
"""Smallest ratio of an erased box's sides."""
TRIES = 10
"""Boxes drawn for an image to be erased; it stays whole where none fits."""


@dataclass(frozen=True)
class Erasing:
    """Fills a box with noise, in so many of all images (`chance`)."""

    chance: float

    def __call__(self, images: Tensor, rng: np.random.Generator, generator: torch.Generator) -> Tensor:
        """images: [b, channels, side, side], normalised; they are overwritten and returned. generator: of the images'
        device, for the noise."""
        erased = (rng.random(len(images)) < self.chance).nonzero()[0]
        boxes = erasing_boxes(len(erased), images.shape[-1], rng)
        if len(erased):
            rows = torch.from_numpy(erased).to(images.device)
            whole = images[rows]
            noise = torch.randn(whole.shape, generator=generator, dtype=images.dtype, device=images.device)
            images[rows] = torch.where(inside(boxes, images.shape[-1], images.device), noise, whole)
        return images


@dataclass(frozen=True)
class Mixing:
    """Mixes every image with another one of its batch. mixup, cutmix: parameters of the beta distributions that the
    image's own share is drawn from; 0 for none. With both, each is drawn for about half of the images."""

    mixup: float
    cutmix: float
    num_classes: int

    def __call__(self, images: Tensor, labels: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """images: [b, channels, side, side]. labels: int64 [b].

        Returns mixed images and, float [b, classes], what they show how much of. The first image is mixed with the
        last, the second with the last but one, and so on.
        """
        shares, is_cut = self._draw(len(images), rng)
        boxes, cut_shares = cutmix_boxes(shares, images.shape[-1], rng)
        shares = np.where(is_cut, cut_shares, shares)
        own: Any = torch.from_numpy(shares).to(images)  # timm says float, and takes one a row as well
        outside = ~inside(boxes, images.shape[-1], images.device)
        cut = torch.from_numpy(is_cut).to(images.device)[:, None, None, None]
        weights = torch.where(cut, outside.to(images.dtype), own[:, None, None, None])
        mixed = torch.lerp(images.flip(0), images, weights.expand_as(images))
        return mixed, mixup_target(labels, self.num_classes, own[:, None])

    def _draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Every image's own share, and whether it is cut and not blended."""
        is_cut = rng.random(count) < 0.5
        if not (self.mixup and self.cutmix):
            is_cut = np.full(count, self.cutmix > 0)
        blended = rng.beta(self.mixup, self.mixup, count) if self.mixup else np.ones(count)
        cut = rng.beta(self.cutmix, self.cutmix, count) if self.cutmix else np.ones(count)
        return np.where(is_cut, cut, blended), is_cut


def erasing_boxes(count: int, side: int, rng: np.random.Generator) -> np.ndarray:
    """int [count, 4]: top, bottom, left and right, the second of each pair outside; empty where none was found."""
    areas = rng.uniform(*ERASED, (count, TRIES)) * side * side
    aspects = np.exp(rng.uniform(math.log(ASPECT), -math.log(ASPECT), (count, TRIES)))
    heights, widths = np.rint(np.sqrt(areas * aspects)), np.rint(np.sqrt(areas / aspects))
    fits = (heights < side) & (widths < side)
    first = fits.argmax(1), np.arange(count)
    height = np.where(fits.any(1), heights.T[first], 0).astype(np.int64)
    width = np.where(fits.any(1), widths.T[first], 0).astype(np.int64)
    top, left = rng.integers(side - height + 1), rng.integers(side - width + 1)
    return np.stack([top, top + height, left, left + width], 1)


def cutmix_boxes(shares: np.ndarray, side: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Squares, int [b, 4] as of `erasing_boxes`, that leave about these shares of an image; where one is clipped by the
    border it leaves more. Also the shares that are really left."""
    length = (side * np.sqrt(1 - shares)).astype(np.int64)
    middle = rng.integers(side, size=(2, len(shares)))
    low, high = (middle - length // 2).clip(0, side), (middle + (length + 1) // 2).clip(0, side)
    left = 1 - (high - low).prod(0) / side**2
    return np.stack([low[0], high[0], low[1], high[1]], 1), left


def inside(boxes: np.ndarray, side: int, device: torch.device) -> Tensor:
    """bool [b, 1, side, side]: which pixels are inside each image's box."""
    top, bottom, left, right = torch.from_numpy(boxes).to(device).T[..., None]
    place = torch.arange(side, device=device)
    rows = (place >= top) & (place < bottom)
    columns = (place >= left) & (place < right)
    return (rows[:, :, None] & columns[:, None, :])[:, None]
