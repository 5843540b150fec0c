"""ArchSpec -> network, through timm; registers our own entry points with timm. The one module here with torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import timm
import torch
from timm.layers.hybrid_embed import HybridEmbed
from timm.models import build_model_with_cfg, register_model
from timm.models.resnet import BasicBlock, ResNet
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_hybrid import ConvStem
from torch import nn

from spaces.spec import ArchSpec


def build(spec: ArchSpec, stochastic_depth: float | None = None) -> nn.Module:
    """The network of a spec with random weights, in training mode; nothing is downloaded.

    stochastic_depth: drop rate of the last block, growing linearly with depth; None is 0. Raises TypeError,
    ValueError, AssertionError or RuntimeError, as timm does, for arguments that do not go together, and TypeError
    for a positive rate where the model has no stochastic depth.
    """
    return _create(spec, stochastic_depth or 0.0)


def count(spec: ArchSpec) -> int:
    """Number of parameters of any timm model, counted without memory for the weights."""
    with torch.device("meta"):
        model = _create(spec, 0.0)
    return sum(parameter.numel() for parameter in model.parameters())


def _create(spec: ArchSpec, stochastic_depth: float) -> nn.Module:
    if not timm.is_model(spec.model):
        raise ValueError(f"model {spec.model!r} is not an entry point of timm {timm.__version__}")
    foreign = sorted(_NEVER & spec.args.keys())
    if foreign:
        raise ValueError(
            f"model {spec.model}: argument {foreign[0]!r} is not allowed: weights are never loaded here"
        )
    try:
        return timm.create_model(spec.model, **{"drop_path_rate": stochastic_depth, **spec.args})
    except TypeError as error:
        if "drop_path_rate" not in str(error) or stochastic_depth:
            raise
    return timm.create_model(spec.model, **spec.args)


_NEVER = {"pretrained", "pretrained_cfg", "pretrained_cfg_overlay", "checkpoint_path", "cache_dir"}


def _cfg(first_conv: str, classifier: str, **extra: Any) -> dict[str, Any]:
    return {"url": "", "num_classes": 1000, "first_conv": first_conv, "classifier": classifier, **extra}


# timm looks here while it registers the entry points below.
default_cfgs = {
    "paretovit_conv_stem_vit": _cfg(
        "patch_embed.backbone.0.conv", "head", input_size=(3, 224, 224), fixed_input_size=True
    ),
    "paretovit_resnet": _cfg("conv1.0", "fc", input_size=(3, 224, 224)),
}


@register_model
def paretovit_conv_stem_vit(
    pretrained: bool = False, *, stem_channels: Sequence[int], stem_strides: Sequence[int], **kwargs: Any
) -> VisionTransformer:
    """A stem of 3 x 3 convolutions with these channels and strides, then a VisionTransformer of the last width."""
    backbone = ConvStem(
        in_chans=kwargs.get("in_chans", 3),
        depth=len(stem_channels),
        channels=tuple(stem_channels),
        stride=tuple(stem_strides),
    )
    embed_layer = partial(HybridEmbed, backbone=backbone, proj=False)
    args = {"embed_layer": embed_layer, "patch_size": 1, **kwargs}
    return build_model_with_cfg(VisionTransformer, "paretovit_conv_stem_vit", pretrained, **args)


@register_model
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
