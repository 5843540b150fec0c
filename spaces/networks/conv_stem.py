"""A stem of convolutions before a plain transformer.

On torch and timm alone: an exported model carries this text along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from timm.layers.hybrid_embed import HybridEmbed
from timm.layers.norm import LayerNorm2d
from timm.models import build_model_with_cfg
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_hybrid import ConvStem
from torch import nn

default_cfgs: dict[str, dict[str, Any]] = {
    "paretovit_conv_stem_vit": {
        "url": "",
        "num_classes": 1000,
        "input_size": (3, 224, 224),
        "fixed_input_size": True,
        "first_conv": "patch_embed.backbone.0.conv",
        "classifier": "head",
    },
}
"""timm looks here while it registers the entry points."""


def paretovit_conv_stem_vit(
    pretrained: bool = False,
    *,
    stem_channels: Sequence[int],
    stem_strides: Sequence[int],
    stem_norm: str = "batch",
    stem_activation: str = "relu",
    **kwargs: Any,
) -> VisionTransformer:
    """A stem of 3 x 3 convolutions with these channels and strides, then a VisionTransformer of the last width.

    stem_norm, after every convolution but the last: `batch`, `layer` (over the channels of a position), or `none`,
    which gives the convolution biases. stem_activation: `relu`, `gelu` or `silu`. Raises ValueError for other words.
    """
    norms = {"batch": nn.BatchNorm2d, "layer": LayerNorm2d, "none": nn.BatchNorm2d}
    activations = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}
    for name, word, legal in (
        ("stem_norm", stem_norm, norms),
        ("stem_activation", stem_activation, activations),
    ):
        if word not in legal:
            raise ValueError(f"{name}: {word!r} is none of {', '.join(legal)}")
    backbone = ConvStem(
        in_chans=kwargs.get("in_chans", 3),
        depth=len(stem_channels),
        channels=tuple(stem_channels),
        stride=tuple(stem_strides),
        norm_layer=norms[stem_norm],
        act_layer=activations[stem_activation],
    )
    if stem_norm == "none":
        _take_norms_out(backbone, activations[stem_activation])
    embed_layer = partial(HybridEmbed, backbone=backbone, proj=False)
    args = {"embed_layer": embed_layer, "patch_size": 1, **kwargs}
    return build_model_with_cfg(VisionTransformer, "paretovit_conv_stem_vit", pretrained, **args)


def _take_norms_out(stem: ConvStem, activation: Callable[[], nn.Module]) -> None:
    """Biases instead, and weights that keep the scale of what goes through (He et al., arXiv:1502.01852)."""
    for layer in list(stem)[:-1]:
        conv = layer.conv
        assert isinstance(conv, nn.Conv2d)
        conv.bias = nn.Parameter(torch.zeros(conv.out_channels))
        nn.init.kaiming_normal_(conv.weight)
        layer.bn = activation()


ENTRY_POINTS = (paretovit_conv_stem_vit,)
