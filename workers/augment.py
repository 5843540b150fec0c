"""RandAugment on the device: every image of a batch draws its operations and their strengths by itself.

The method is RandAugment (arXiv 1909.13719). Operations, strengths and chances are those that timm calls
`rand-m9-mstd0.5-inc1` and DeiT uses (arXiv 2012.12877), with two changes for small images: nothing is rotated, sheared
or shifted as far (`ROTATION`, `SHEAR`, `SHIFT`), so that digits keep their labels, and `colour` is left out where there
are no colours. Values are numbers from 0 to 255, not rounded between two operations.

What is random is drawn on the host with numpy, in one order whatever the device is; an operation is applied to all
images of a batch that drew it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

MAX_MAGNITUDE = 10.0
MAGNITUDE_STD = 0.5
"""Deviation of an image's magnitude from the one that is asked for."""
CHANCE = 0.5
"""Of each operation drawn, to be applied."""
ROTATION = 20.0
"""Degrees at the largest magnitude; 30 in timm."""
SHEAR = 0.2
"""0.3 in timm."""
SHIFT = 0.2
"""Share of the side; 0.45 in timm."""
BLEND = 0.9
"""How far brightness and the like depart from 1, at most."""
SOLARIZE_ADD = 110.0
GREY = (0.299, 0.587, 0.114)
"""Weights of red, green and blue (ITU-R 601-2)."""

Change = Callable[[Tensor, Tensor], Tensor]
"""images: [b, channels, side, side], 0 to 255. level: [b, 1, 1, 1], -1 to 1, the strength and its direction."""


def autocontrast(images: Tensor, _level: Tensor) -> Tensor:
    """Stretches each channel to 0 to 255; one that is constant stays."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    span = high - low
    stretched = (images - low) * (255 / span.clamp(min=1e-6))
    return torch.where(span > 0, stretched, images)


def equalize(images: Tensor, _level: Tensor) -> Tensor:
    """Makes the histogram of each channel flat, as PIL does; a channel of one value stays."""
    count, channels, side, _ = images.shape
    values = images.round().long().view(count * channels, -1)
    histogram = torch.zeros(len(values), 256, dtype=torch.long, device=images.device)
    histogram.scatter_add_(1, values, torch.ones_like(values))
    occupied = torch.arange(256, device=images.device) * (histogram > 0)
    last = histogram.gather(1, occupied.amax(1, keepdim=True))
    step = (side * side - last) // 255
    below = histogram.cumsum(1) - histogram
    table = ((below + step // 2) // step.clamp(min=1)).clamp(max=255)
    flat = torch.where(step > 0, table.gather(1, values), values)
    return flat.view_as(images).to(images.dtype)


def invert(images: Tensor, _level: Tensor) -> Tensor:
    return 255 - images


def posterize(images: Tensor, level: Tensor) -> Tensor:
    """Keeps 4 bits of each value, down to 1 with the strength."""
    step = 2.0 ** (4 + (4 * level.abs()).floor().clamp(max=3))
    return (images / step).floor() * step


def solarize(images: Tensor, level: Tensor) -> Tensor:
    """Inverts values above a threshold that falls from 256 to 0 with the strength."""
    return torch.where(images >= 256 - (256 * level.abs()).floor(), 255 - images, images)


def solarize_add(images: Tensor, level: Tensor) -> Tensor:
    """Brightens values below 128."""
    return torch.where(images < 128, (images + SOLARIZE_ADD * level.abs()).clamp(max=255), images)


def brightness(images: Tensor, level: Tensor) -> Tensor:
    return _blend(torch.zeros_like(images), images, level)


def contrast(images: Tensor, level: Tensor) -> Tensor:
    """Away from, or towards, the mean of the image's grey values."""
    return _blend(_grey(images).mean((2, 3), keepdim=True), images, level)


def colour(images: Tensor, level: Tensor) -> Tensor:
    """Away from, or towards, its grey image."""
    return _blend(_grey(images), images, level)


def sharpness(images: Tensor, level: Tensor) -> Tensor:
    """Away from, or towards, the image smoothed by PIL's kernel; pixels at the border stay."""
    kernel = torch.ones(1, 1, 3, 3, dtype=images.dtype, device=images.device)
    kernel[0, 0, 1, 1] = 5
    single = images.flatten(0, 1)[:, None]
    smooth = images.clone()
    smooth[..., 1:-1, 1:-1] = functional.conv2d(single, kernel / 13).view_as(images[..., 1:-1, 1:-1])
    return _blend(smooth, images, level)


PIXELS: dict[str, Change] = {
    "autocontrast": autocontrast,
    "equalize": equalize,
    "invert": invert,
    "posterize": posterize,
    "solarize": solarize,
    "solarize_add": solarize_add,
    "brightness": brightness,
    "contrast": contrast,
    "colour": colour,
    "sharpness": sharpness,
}
GEOMETRY = ("rotate", "shear_x", "shear_y", "shift_x", "shift_y")


@dataclass(frozen=True)
class RandAugment:
    """magnitude: 0 to 10, how strong the operations are. num_ops: drawn for an image, one after another."""

    magnitude: float
    num_ops: int

    def __call__(self, images: Tensor, fill: Tensor, rng: np.random.Generator) -> Tensor:
        """images: float [b, channels, side, side], 0 to 255; they are overwritten and returned.
        fill: [channels, 1, 1], the colour of what comes in from outside an image."""
        names = operations(images.shape[1])
        for _ in range(self.num_ops):
            drawn = rng.integers(len(names), size=len(images))
            magnitudes = rng.normal(self.magnitude, MAGNITUDE_STD, len(images))
            levels = np.clip(magnitudes, 0, MAX_MAGNITUDE) / MAX_MAGNITUDE
            levels *= rng.choice((-1.0, 1.0), len(images))
            applied = rng.random(len(images)) < CHANCE
            for number, name in enumerate(names):
                if name in PIXELS:
                    _apply(images, applied & (drawn == number), levels, PIXELS[name])
            moved = applied & (drawn >= len(names) - len(GEOMETRY))
            _move(images, moved, [names[number] for number in drawn[moved]], levels, fill)
        return images


def operations(channels: int) -> tuple[str, ...]:
    """Names of all operations for such images; those that move them come last."""
    return (*(name for name in PIXELS if name != "colour" or channels == len(GREY)), *GEOMETRY)


def matrix(name: str, level: float) -> list[list[float]]:
    """Of an operation that moves an image: from where in it a place takes its value, both with sides from -1 to 1."""
    if name == "rotate":
        angle = np.radians(ROTATION * level)
        return [[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0]]
    found = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    row = 0 if name.endswith("_x") else 1
    if name.startswith("shear"):
        found[row][1 - row] = SHEAR * level
    else:
        found[row][2] = 2 * SHIFT * level
    return found


def warp(images: Tensor, matrices: Tensor, fill: Tensor) -> Tensor:
    """Moves each image by its own matrix, [b, 2, 3]; bilinear."""
    grid = functional.affine_grid(matrices, list(images.shape), align_corners=False)
    return functional.grid_sample(images - fill, grid, align_corners=False).add_(fill)


def _apply(images: Tensor, chosen: np.ndarray, levels: np.ndarray, change: Change) -> None:
    if not chosen.any():
        return
    rows = torch.from_numpy(chosen.nonzero()[0]).to(images.device)
    level = torch.from_numpy(levels[chosen]).to(images)[:, None, None, None]
    images[rows] = change(images[rows], level)


def _move(images: Tensor, chosen: np.ndarray, names: list[str], levels: np.ndarray, fill: Tensor) -> None:
    if not names:
        return
    rows = torch.from_numpy(chosen.nonzero()[0]).to(images.device)
    matrices = [matrix(name, level) for name, level in zip(names, levels[chosen], strict=True)]
    images[rows] = warp(images[rows], torch.tensor(matrices).to(images), fill)


def _blend(other: Tensor, images: Tensor, level: Tensor) -> Tensor:
    return torch.lerp(other.expand_as(images), images, (1 + BLEND * level).expand_as(images)).clamp_(0, 255)


def _grey(images: Tensor) -> Tensor:
    """[b, 1, side, side]."""
    if images.shape[1] != len(GREY):
        return images.mean(1, keepdim=True)
    weights = torch.tensor(GREY, dtype=images.dtype, device=images.device)[:, None, None]
    return (images * weights).sum(1, keepdim=True)
