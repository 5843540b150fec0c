"""Networks of ours, as entry points for timm. `spaces.models` registers them there.

This file stands on torch and timm alone: an exported model that needs it carries its text along.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from timm.layers.hybrid_embed import HybridEmbed
from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed
from timm.models import build_model_with_cfg
from timm.models.eva import Eva
from timm.models.resnet import BasicBlock, ResNet
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_hybrid import ConvStem
from torch import nn


def _cfg(first_conv: str, classifier: str, **extra: Any) -> dict[str, Any]:
    return {"url": "", "num_classes": 1000, "first_conv": first_conv, "classifier": classifier, **extra}


# timm looks here while it registers the entry points.
default_cfgs = {
    "paretovit_conv_stem_vit": _cfg(
        "patch_embed.backbone.0.conv", "head", input_size=(3, 224, 224), fixed_input_size=True
    ),
    "paretovit_resnet": _cfg("conv1.0", "fc", input_size=(3, 224, 224)),
    "paretovit_rotary_vit": _cfg("patch_embed.proj", "head", input_size=(3, 224, 224), fixed_input_size=True),
    "paretovit_sincos_vit": _cfg("patch_embed.proj", "head", input_size=(3, 224, 224), fixed_input_size=True),
}


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


class SinCosVisionTransformer(VisionTransformer):
    """Every patch is told its place by sines and cosines of both coordinates (as in He et al., arXiv:2111.06377);
    class token and registers have none."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "pos_embed": "none", "no_embed_class": True})
        table = build_sincos2d_pos_embed(list(self.patch_embed.grid_size), self.embed_dim)
        del self.pos_embed
        self.register_buffer("pos_embed", table.unsqueeze(0))


def paretovit_sincos_vit(pretrained: bool = False, **kwargs: Any) -> VisionTransformer:
    """A VisionTransformer with fixed positions; its width is a multiple of 4."""
    return build_model_with_cfg(SinCosVisionTransformer, "paretovit_sincos_vit", pretrained, **kwargs)


def paretovit_rotary_vit(pretrained: bool = False, *, reg_tokens: int = 0, **kwargs: Any) -> Eva:
    """A plain transformer with axial rotary positions and no others, set like timm's `vit_base_patch16_rope_224`; the
    other arguments are those of a VisionTransformer."""
    args = {
        "attn_type": "rope",
        "use_abs_pos_emb": False,
        "use_rot_pos_emb": True,
        "rope_grid_indexing": "xy",
        "rope_temperature": 100.0,
        "num_reg_tokens": reg_tokens,
        "use_fc_norm": kwargs.get("global_pool") == "avg",
        **kwargs,
    }
    return build_model_with_cfg(Eva, "paretovit_rotary_vit", pretrained, **args)


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


ENTRY_POINTS = (paretovit_conv_stem_vit, paretovit_resnet, paretovit_rotary_vit, paretovit_sincos_vit)
