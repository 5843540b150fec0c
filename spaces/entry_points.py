"""Networks of ours, as entry points for timm. `spaces.models` registers them there."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from spaces.networks import autoformer, backbone, coatnet, conv_stem, positions, resnet, unshifted, windowed

_MODULES = (autoformer, backbone, coatnet, conv_stem, positions, resnet, unshifted, windowed)

ENTRY_POINTS: tuple[Callable[..., nn.Module], ...] = tuple(
    entry_point for module in _MODULES for entry_point in module.ENTRY_POINTS
)
