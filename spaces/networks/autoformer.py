"""Blocks with heads and an MLP ratio of their own, and relative positions (AutoFormer).

On torch and timm alone: an exported model carries this text along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from timm.layers.drop import DropPath
from timm.layers.mlp import Mlp
from timm.models import build_model_with_cfg
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

default_cfgs: dict[str, dict[str, Any]] = {
    "paretovit_autoformer": {
        "url": "",
        "num_classes": 1000,
        "input_size": (3, 224, 224),
        "fixed_input_size": True,
        "first_conv": "patch_embed.proj",
        "classifier": "head",
    },
}
"""timm looks here while it registers the entry points."""


class RelativeAttention(nn.Module):
    """Self-attention of heads 64 wide whose keys and values know their place relative to the query (AutoFormer).

    To every key and value belongs the sum of a vector for the rows and one for the columns between query and it, up to
    `max_distance`; the first vector of each table is for the class token, from and to anywhere. Rows and columns are
    taken apart, so that no vector is made for every pair of patches.
    """

    head_width = 64
    key_rows: nn.Parameter
    key_columns: nn.Parameter
    value_rows: nn.Parameter
    value_columns: nn.Parameter
    index: Tensor

    def __init__(self, dim: int, num_heads: int, grid: int, max_distance: int) -> None:
        super().__init__()
        self.num_heads, self.grid = num_heads, grid
        inner = num_heads * self.head_width
        self.qkv = nn.Linear(dim, 3 * inner)
        self.proj = nn.Linear(inner, dim)
        for name in ("key_rows", "key_columns", "value_rows", "value_columns"):
            table = nn.Parameter(torch.empty(2 * max_distance + 2, self.head_width))
            nn.init.trunc_normal_(table, std=0.02)
            self.register_parameter(name, table)
        places = torch.arange(grid)
        distances = (places[None, :] - places[:, None]).clamp(-max_distance, max_distance)
        self.register_buffer("index", distances + max_distance + 1, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, 1 + grid x grid, dim), the class token first; the same shape comes out."""
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1) + self._on_keys(q)) * self.head_width**-0.5
        weights = scores.softmax(-1)
        mixed = weights @ v + self._on_values(weights)
        return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, -1))

    def _on_keys(self, q: Tensor) -> Tensor:
        """(batch, heads, tokens, tokens): what each query gives for the place of each key."""
        token = (q * (self.key_rows[0] + self.key_columns[0])).sum(-1, keepdim=True)
        patches = q[:, :, 1:].unflatten(2, (self.grid, self.grid))
        rows = torch.einsum("bhxyd,xrd->bhxyr", patches, self.key_rows[self.index])
        columns = torch.einsum("bhxyd,ycd->bhxyc", patches, self.key_columns[self.index])
        pairs = (rows[..., :, None] + columns[..., None, :]).flatten(4).flatten(2, 3)
        first = token[:, :, :1].expand(-1, -1, -1, q.shape[2])
        return torch.cat((first, torch.cat((token[:, :, 1:], pairs), -1)), 2)

    def _on_values(self, weights: Tensor) -> Tensor:
        """(batch, heads, tokens, 64): the places of all values, weighted."""
        token = self.value_rows[0] + self.value_columns[0]
        first = weights[:, :, :1].sum(-1, keepdim=True) * token
        pairs = (
            weights[:, :, 1:, 1:].unflatten(3, (self.grid, self.grid)).unflatten(2, (self.grid, self.grid))
        )
        rows = torch.einsum("bhxyr,xrd->bhxyd", pairs.sum(-1), self.value_rows[self.index])
        columns = torch.einsum("bhxyc,ycd->bhxyd", pairs.sum(-2), self.value_columns[self.index])
        patches = (rows + columns).flatten(2, 3) + weights[:, :, 1:, :1] * token
        return torch.cat((first, patches), 2)


class PerLayerBlock(nn.Module):
    """A pre-norm transformer block whose attention is as wide as its heads take."""

    def __init__(
        self, dim: int, num_heads: int, mlp_ratio: float, grid: int, max_distance: int, drop_path: float
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = RelativeAttention(dim, num_heads, grid, max_distance)
        self.drop_path1 = DropPath(drop_path) if drop_path else nn.Identity()
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, int(dim * mlp_ratio))
        self.drop_path2 = DropPath(drop_path) if drop_path else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop_path1(self.attn(self.norm1(x)))
        return x + self.drop_path2(self.mlp(self.norm2(x)))


def paretovit_autoformer(
    pretrained: bool = False,
    *,
    img_size: int,
    patch_size: int,
    num_heads: Sequence[int],
    mlp_ratios: Sequence[float],
    max_distance: int,
    **kwargs: Any,
) -> VisionTransformer:
    """A VisionTransformer with these heads and MLP ratios, block by block, and relative positions; the mean of its
    patches is read, its class token is not."""
    shapes = iter(zip(num_heads, mlp_ratios, strict=True))

    def block(dim: int, drop_path: float, **_: Any) -> PerLayerBlock:
        heads, ratio = next(shapes)
        return PerLayerBlock(dim, heads, ratio, img_size // patch_size, max_distance, drop_path)

    args = {
        "img_size": img_size,
        "patch_size": patch_size,
        "depth": len(num_heads),
        "block_fn": block,
        "global_pool": "avg",
        "fc_norm": False,
        **kwargs,
    }
    return build_model_with_cfg(VisionTransformer, "paretovit_autoformer", pretrained, **args)


ENTRY_POINTS = (paretovit_autoformer,)
