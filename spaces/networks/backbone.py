"""A network of timm, cut after a stage, before a plain transformer.

On torch and timm alone: an exported model carries this text along.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from timm.layers.hybrid_embed import HybridEmbed
from timm.models import build_model_with_cfg, create_model, get_pretrained_cfg, is_model
from timm.models.vision_transformer import VisionTransformer
from torch import nn

default_cfgs: dict[str, dict[str, Any]] = {
    "paretovit_backbone_vit": {
        "url": "",
        "num_classes": 1000,
        "input_size": (3, 224, 224),
        "fixed_input_size": True,
        "first_conv": "patch_embed.proj",
        "classifier": "head",
    },
}
"""timm looks here while it registers the entry points."""


def feature_network(name: str, stage: int, in_chans: int, img_size: int) -> nn.Module:
    """The network of timm's entry point `name` with random weights, without what lies behind the feature level `stage`.
    It takes images [n, in_chans, img_size, img_size] and gives a list of one map [n, channels, height, width].

    Raises ValueError for anything but the bare name of an entry point, so that nothing is ever looked for elsewhere.
    """
    if "." in name or not is_model(name):
        raise ValueError(f"backbone: {name!r} is not an entry point of timm")
    config = get_pretrained_cfg(name)
    given: dict[str, Any] = {"out_indices": (stage,), "in_chans": in_chans}
    if config is not None and config.fixed_input_size:
        given["img_size"] = img_size
    return create_model(name, pretrained=False, features_only=True, feature_cls="getter", **given)


def paretovit_backbone_vit(
    pretrained: bool = False, *, backbone: str, stage: int, **kwargs: Any
) -> VisionTransformer:
    """The first stages of any network of timm, then a VisionTransformer that takes each position of their map as a
    patch."""
    network = feature_network(backbone, stage, kwargs.get("in_chans", 3), kwargs.get("img_size", 224))
    embed_layer = partial(HybridEmbed, backbone=network)
    args = {"embed_layer": embed_layer, "patch_size": 1, **kwargs}
    return build_model_with_cfg(VisionTransformer, "paretovit_backbone_vit", pretrained, **args)


ENTRY_POINTS = (paretovit_backbone_vit,)
