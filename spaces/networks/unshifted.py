"""Swin transformers that shift no window.

On torch and timm alone: an exported model carries this text along.
"""

from __future__ import annotations

from typing import Any

from timm.models import build_model_with_cfg
from timm.models.swin_transformer import SwinTransformer, SwinTransformerBlock
from timm.models.swin_transformer_v2 import SwinTransformerV2, SwinTransformerV2Block

_CFG: dict[str, Any] = {
    "url": "",
    "num_classes": 1000,
    "input_size": (3, 224, 224),
    "fixed_input_size": True,
    "first_conv": "patch_embed.proj",
    "classifier": "head.fc",
}
default_cfgs: dict[str, dict[str, Any]] = dict.fromkeys(
    ("paretovit_unshifted_swin", "paretovit_unshifted_swinv2"), _CFG
)
"""timm looks here while it registers the entry points."""


def paretovit_unshifted_swin(pretrained: bool = False, **kwargs: Any) -> SwinTransformer:
    """A SwinTransformer of which no block shifts its windows."""
    return _unshifted(build_model_with_cfg(SwinTransformer, "paretovit_unshifted_swin", pretrained, **kwargs))


def paretovit_unshifted_swinv2(pretrained: bool = False, **kwargs: Any) -> SwinTransformerV2:
    """A SwinTransformerV2 of which no block shifts its windows."""
    return _unshifted(
        build_model_with_cfg(SwinTransformerV2, "paretovit_unshifted_swinv2", pretrained, **kwargs)
    )


def _unshifted(model: Any) -> Any:
    for block in model.modules():
        if isinstance(block, SwinTransformerBlock | SwinTransformerV2Block):
            block.target_shift_size = block.shift_size = (0, 0)
            block.register_buffer("attn_mask", None, persistent=False)
    return model


ENTRY_POINTS = (
    paretovit_unshifted_swin,
    paretovit_unshifted_swinv2,
)
