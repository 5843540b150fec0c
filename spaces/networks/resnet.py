"""A ResNet for small images.

On torch and timm alone: an exported model carries this text along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timm.models import build_model_with_cfg
from timm.models.resnet import BasicBlock, ResNet
from torch import nn

default_cfgs: dict[str, dict[str, Any]] = {
    "paretovit_resnet": {
        "url": "",
        "num_classes": 1000,
        "input_size": (3, 224, 224),
        "first_conv": "conv1.0",
        "classifier": "fc",
    },
}
"""timm looks here while it registers the entry points."""


def paretovit_resnet(
    pretrained: bool = False,
    *,
    channels: Sequence[int],
    layers: Sequence[int],
    stem_stride: int,
    **kwargs: Any,
) -> ResNet:
    """A ResNet-D of basic blocks with four stages whose stem reduces the image by 1, 2 or 4."""
    if stem_stride not in (1, 2, 4):
        raise ValueError(f"stem_stride: {stem_stride} is none of 1, 2, 4")
    args = {
        "block": BasicBlock,
        "layers": tuple(layers),
        "channels": tuple(channels),
        "stem_type": "deep",
        "stem_width": channels[0] // 2,
        "avg_down": True,
        **kwargs,
    }
    model = build_model_with_cfg(ResNet, "paretovit_resnet", pretrained, **args)
    if stem_stride == 1:
        assert isinstance(model.conv1, nn.Sequential)
        first = model.conv1[0]
        assert isinstance(first, nn.Conv2d)
        first.stride = (1, 1)
    if stem_stride < 4:
        model.maxpool = nn.Identity()
    return model


ENTRY_POINTS = (paretovit_resnet,)
