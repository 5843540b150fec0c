"""Plain transformers whose positions are not learned.

On torch and timm alone: an exported model carries this text along.
"""

from __future__ import annotations

from typing import Any

from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed
from timm.models import build_model_with_cfg
from timm.models.eva import Eva
from timm.models.vision_transformer import VisionTransformer

_CFG: dict[str, Any] = {
    "url": "",
    "num_classes": 1000,
    "input_size": (3, 224, 224),
    "fixed_input_size": True,
    "first_conv": "patch_embed.proj",
    "classifier": "head",
}
default_cfgs: dict[str, dict[str, Any]] = dict.fromkeys(
    ("paretovit_sincos_vit", "paretovit_rotary_vit"), _CFG
)
"""timm looks here while it registers the entry points."""


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


ENTRY_POINTS = (
    paretovit_sincos_vit,
    paretovit_rotary_vit,
)
