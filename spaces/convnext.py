"""The smallest ConvNeXts (Liu et al., arXiv:2201.03545) of timm, as far as a stage.

Patches of 4 x 4 pixels, then four stages whose widths double. Between two of them 2 x 2 positions become one; what is
left of an image or of a map that they do not divide is dropped.
"""

from __future__ import annotations

from spaces.costs import Cost, convolution, norm

WIDTHS: dict[str, int] = {"convnext_atto": 40, "convnext_femto": 48, "convnext_pico": 64}
"""timm's name -> channels of the first stage."""

DEPTHS = (2, 2, 6, 2)
"""Blocks of each stage."""


def cut(width: int, stages: int, image_size: int, inputs: int) -> tuple[int, int, Cost]:
    """Side and channels of the map after so many stages, from 1 on, and the cost of everything before it. The side is 0
    where nothing is left of the image."""
    side = image_size // 4
    cost = convolution(side, 4, inputs, width, bias=True) + norm(width)
    for stage, depth in enumerate(DEPTHS[:stages]):
        if stage:
            side //= 2
            cost += norm(width) + convolution(side, 2, width, 2 * width, bias=True)
            width *= 2
        cost += _block(side, width) * depth
    return side, width, cost


def _block(side: int, width: int) -> Cost:
    depthwise = convolution(side, 7, 1, width, bias=True) + norm(width)
    widen = convolution(side, 1, width, 4 * width, bias=True)
    scales = Cost(params=width)
    return depthwise + widen + convolution(side, 1, 4 * width, width, bias=True) + scales
