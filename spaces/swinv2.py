"""Swin transformers of the second version (Liu et al., arXiv:2111.09883), built by timm's `SwinTransformerV2`.

Dimensions and rules are those of `spaces.swin`. Other than there, scores are cosines with a learned scale a head, keys
have no bias, a small network makes the bias of every relative position from its coordinates, and maps are normalised
after what a block adds and after merging, not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spaces.costs import Analysis, Cost, attention, linear, mlp, norm
from spaces.dims import Value
from spaces.sized import IMAGE_SIZE
from spaces.swin import Swin, analyse_stages, padded, published

MODEL = "swinv2_tiny_window8_256"
UNSHIFTED = "paretovit_unshifted_swinv2"
POSITION_WIDTH = 512
"""Hidden width of the network that makes the biases of relative positions."""


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of a SwinTransformerV2 with one window size for all stages."""
    return analyse_stages(args, image_size, _block, _merging)


def _block(side: int, window: int, width: int, heads: int, ratio: float) -> Cost:
    windows = (padded(side, window) // window) ** 2
    mixed = attention(window * window, width, heads, windows, qkv_bias=False, is_fused=False)
    own = Cost(params=2 * width + heads)
    return norm(width) * 2 + mixed + own + _positions(window, heads) + mlp(side * side, width, ratio)


def _positions(window: int, heads: int) -> Cost:
    """The network runs once for all images of a batch; here its work is counted for the one image."""
    places = (2 * window - 1) ** 2
    made = linear(places, 2, POSITION_WIDTH) + linear(places, POSITION_WIDTH, heads, bias=False)
    return made + Cost(unstored=made.activations)


def _merging(side: int, width: int) -> Cost:
    return linear(side * side, 4 * width, 2 * width, bias=False) + norm(2 * width)


NAMED: dict[str, Mapping[str, Value]] = {
    f"swinv2_{size}_window{window}_256": {IMAGE_SIZE: 256, **published(heads, depth_3, window)}
    for size, heads, depth_3 in (("tiny", 3, 6), ("small", 3, 18), ("base", 4, 18))
    for window in (8, 16)
}


class SwinV2(Swin):
    """The dimensions of `Swin`."""

    name = "swinv2"
    model = MODEL
    unshifted = UNSHIFTED
    named: Mapping[str, Mapping[str, Value]] = NAMED
