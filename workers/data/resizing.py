"""Batches to the side that a network takes, on their device, after augmentation."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def resized(images: Tensor, side: int) -> Tensor:
    """float [b, channels, s, s] to [b, channels, side, side], bicubic with antialiasing; itself where s is `side`."""
    if images.shape[2:] == (side, side):
        return images
    return functional.interpolate(images, size=(side, side), mode="bicubic", antialias=True)
