"""Images for a measurement: real ones where there are some, brought to the network's input."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spaces.spec import ArchSpec
from workers.data.resizing import resized

MAX_IMAGES = 64


def prepare(spec: ArchSpec, images: np.ndarray | None, seed: int = 0) -> Tensor:
    """float32 [n, channels, side, side], roughly standardised, n from 1 to 64, on the host.

    images: uint8 [n, height, width, channels]; None, or another number of channels than `spec` takes: noise, drawn
    from `seed`. The time that a network takes hardly depends on what is in an image; energy does, a little.
    """
    channels, side = int(spec.args.get("in_chans", 3)), spec.image_size
    if images is None or images.shape[3] != channels:
        return torch.randn(MAX_IMAGES, channels, side, side, generator=torch.Generator().manual_seed(seed))
    pixels = torch.from_numpy(images[:MAX_IMAGES]).permute(0, 3, 1, 2).float() / 255
    pixels = resized(pixels, side)
    return ((pixels - pixels.mean()) / pixels.std().clamp_min(1e-3)).contiguous()


def batch(images: Tensor, size: int) -> Tensor:
    """`size` images, repeating those that there are."""
    return images[torch.arange(size) % len(images)].contiguous()
