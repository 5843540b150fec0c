"""Plain transformers of which some blocks attend to a part of the map.

On torch and timm alone: an exported model carries this text along.
"""

from __future__ import annotations

from typing import Any

from timm.layers.pos_embed_sincos import RotaryEmbeddingCat, apply_rot_embed_cat
from timm.models import build_model_with_cfg
from timm.models.vision_transformer_sam import (
    Attention,
    Block,
    VisionTransformerSAM,
    get_decomposed_rel_pos_bias,
)
from torch import Tensor
from torch.nn import functional

_CFG: dict[str, Any] = {
    "url": "",
    "num_classes": 1000,
    "input_size": (3, 224, 224),
    "fixed_input_size": True,
    "first_conv": "patch_embed.proj",
    "classifier": "head.fc",
}
default_cfgs: dict[str, dict[str, Any]] = dict.fromkeys(
    ("paretovit_windowed_vit", "paretovit_grid_vit", "paretovit_subsampled_vit"), _CFG
)
"""timm looks here while it registers the entry points."""


class MapAttention(Attention):
    """timm's attention over a map, whose keys and values may be taken from averages over `stride` x `stride` patches.

    Heads are a dimension of their own here, which ONNX needs.
    """

    rope: RotaryEmbeddingCat | None

    def __init__(self, stride: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[1:3]
        q, k, v = self._projected(x)
        q, k, bias = self.q_norm(q), self.k_norm(k), None
        if self.use_rel_pos:
            key_sides = (-(-height // self.stride), -(-width // self.stride))
            bias = get_decomposed_rel_pos_bias(
                q.flatten(0, 1), self.rel_pos_h, self.rel_pos_w, (height, width), key_sides
            ).unflatten(0, (-1, self.num_heads))
        elif self.rope is not None:
            places = self.rope.get_embed()
            q, k = (apply_rot_embed_cat(each, places).type_as(v) for each in (q, k))
        dropout = self.attn_drop.p if self.training else 0.0
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout)
        return self.proj_drop(self.proj(mixed.transpose(1, 2).reshape(x.shape)))

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values: (batch, heads, patches, head width) each."""
        heads, channels = self.num_heads, x.shape[-1]
        if self.stride == 1:
            qkv = self.qkv(x).flatten(1, 2).unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            return qkv[0], qkv[1], qkv[2]
        coarse = functional.avg_pool2d(x.permute(0, 3, 1, 2), self.stride, ceil_mode=True).permute(0, 2, 3, 1)
        weight, bias = self.qkv.weight, self.qkv.bias
        query_bias, rest_bias = (None, None) if bias is None else (bias[:channels], bias[channels:])
        q = functional.linear(x, weight[:channels], query_bias).flatten(1, 2).unflatten(2, (heads, -1))
        rest = functional.linear(coarse, weight[channels:], rest_bias).flatten(1, 2)
        kv = rest.unflatten(2, (2, heads, -1)).permute(2, 0, 3, 1, 4)
        return q.transpose(1, 2), kv[0], kv[1]


class WindowBlock(Block):
    """Attends inside windows of `window_size` x `window_size` patches, or everywhere where that is 0."""

    def __init__(
        self, dim: int, num_heads: int, window_size: int, input_size: Any, stride: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(dim, num_heads, window_size=window_size, input_size=input_size, **kwargs)
        names = ("qkv_bias", "qk_norm", "attn_drop", "proj_drop", "norm_layer", "use_rel_pos", "rope")
        sides = (window_size, window_size) if window_size else input_size
        given = {name: kwargs[name] for name in names}
        self.attn = MapAttention(stride, dim, num_heads, input_size=sides, **given)


class GridBlock(WindowBlock):
    """Attends among patches that are spread evenly over the map: `window_size` a side, as far apart as that takes."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.window_size:
            return super().forward(x)
        # What is spread is brought together, so that windows see it; everything else in a block is done patch by patch.
        size, (height, width) = self.window_size, x.shape[1:3]
        together = _transposed(x, size, height // size, size, width // size)
        return _transposed(super().forward(together), height // size, size, width // size, size)


def _transposed(x: Tensor, *sides: int) -> Tensor:
    """The map (batch, rows, columns, width) whose rows and columns, each two-dimensional, are transposed."""
    parted = x.reshape(x.shape[0], *sides, x.shape[-1])
    return parted.permute(0, 2, 1, 4, 3, 5).reshape(x.shape)


class SubsampledBlock(WindowBlock):
    """`window_size` is the stride of keys and values here; 0 where attention is to every patch."""

    def __init__(self, dim: int, num_heads: int, window_size: int, **kwargs: Any) -> None:
        super().__init__(dim, num_heads, window_size=0, stride=max(1, window_size), **kwargs)


def paretovit_windowed_vit(pretrained: bool = False, **kwargs: Any) -> VisionTransformerSAM:
    """A VisionTransformerSAM without a neck."""
    args = {"block_fn": WindowBlock, "neck_chans": None, **kwargs}
    return build_model_with_cfg(VisionTransformerSAM, "paretovit_windowed_vit", pretrained, **args)


def paretovit_grid_vit(pretrained: bool = False, **kwargs: Any) -> VisionTransformerSAM:
    """The same whose blocks attend in grids where they are not global."""
    args = {"block_fn": GridBlock, "neck_chans": None, **kwargs}
    return build_model_with_cfg(VisionTransformerSAM, "paretovit_grid_vit", pretrained, **args)


def paretovit_subsampled_vit(
    pretrained: bool = False, *, kv_stride: int, **kwargs: Any
) -> VisionTransformerSAM:
    """The same whose keys and values are subsampled where blocks are not global."""
    args = {"block_fn": SubsampledBlock, "neck_chans": None, "window_size": kv_stride, **kwargs}
    return build_model_with_cfg(VisionTransformerSAM, "paretovit_subsampled_vit", pretrained, **args)


ENTRY_POINTS = (
    paretovit_windowed_vit,
    paretovit_grid_vit,
    paretovit_subsampled_vit,
)
