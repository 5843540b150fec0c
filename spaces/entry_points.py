"""Networks of ours, as entry points for timm. `spaces.models` registers them there.

This file stands on torch and timm alone: an exported model that needs it carries its text along, which is why all of
them are in one file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from timm.layers.drop import DropPath
from timm.layers.hybrid_embed import HybridEmbed
from timm.layers.mlp import Mlp
from timm.layers.norm import LayerNorm2d
from timm.layers.pos_embed_sincos import RotaryEmbeddingCat, apply_rot_embed_cat, build_sincos2d_pos_embed
from timm.models import build_model_with_cfg, create_model, get_pretrained_cfg, is_model, named_apply
from timm.models.eva import Eva
from timm.models.maxxvit import (
    Downsample2d,
    MaxxVit,
    MaxxVitCfg,
    MaxxVitConvCfg,
    MaxxVitStage,
    MaxxVitTransformerCfg,
    MbConvBlock,
)
from timm.models.resnet import BasicBlock, ResNet
from timm.models.swin_transformer import SwinTransformer, SwinTransformerBlock
from timm.models.swin_transformer_v2 import SwinTransformerV2, SwinTransformerV2Block
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_hybrid import ConvStem
from timm.models.vision_transformer_sam import (
    Attention,
    Block,
    VisionTransformerSAM,
    get_decomposed_rel_pos_bias,
)
from torch import Tensor, nn
from torch.nn import functional


def _cfg(first_conv: str, classifier: str, **extra: Any) -> dict[str, Any]:
    return {"url": "", "num_classes": 1000, "first_conv": first_conv, "classifier": classifier, **extra}


_SIZED: dict[str, Any] = {"input_size": (3, 224, 224), "fixed_input_size": True}

# timm looks here while it registers the entry points.
default_cfgs = {
    "paretovit_autoformer": _cfg("patch_embed.proj", "head", **_SIZED),
    "paretovit_coatnet": _cfg("stem.conv1", "head.fc", **_SIZED),
    "paretovit_backbone_vit": _cfg("patch_embed.proj", "head", **_SIZED),
    "paretovit_conv_stem_vit": _cfg("patch_embed.backbone.0.conv", "head", **_SIZED),
    "paretovit_grid_vit": _cfg("patch_embed.proj", "head.fc", **_SIZED),
    "paretovit_resnet": _cfg("conv1.0", "fc", input_size=(3, 224, 224)),
    "paretovit_rotary_vit": _cfg("patch_embed.proj", "head", **_SIZED),
    "paretovit_sincos_vit": _cfg("patch_embed.proj", "head", **_SIZED),
    "paretovit_subsampled_vit": _cfg("patch_embed.proj", "head.fc", **_SIZED),
    "paretovit_unshifted_swin": _cfg("patch_embed.proj", "head.fc", **_SIZED),
    "paretovit_unshifted_swinv2": _cfg("patch_embed.proj", "head.fc", **_SIZED),
    "paretovit_windowed_vit": _cfg("patch_embed.proj", "head.fc", **_SIZED),
}


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


def _take_norms_out(stem: ConvStem, activation: Callable[[], nn.Module]) -> None:
    """Biases instead, and weights that keep the scale of what goes through (He et al., arXiv:1502.01852)."""
    for layer in list(stem)[:-1]:
        conv = layer.conv
        assert isinstance(conv, nn.Conv2d)
        conv.bias = nn.Parameter(torch.zeros(conv.out_channels))
        nn.init.kaiming_normal_(conv.weight)
        layer.bn = activation()


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


class StagedMaxxVit(MaxxVit):
    """timm's CoAtNet and MaxViT, with settings of its own for every stage, and maps of odd sides halved rounding up.

    kinds: of the stages, `conv`, `attention` or `maxvit`. expand_ratios, window_sizes: read for the kinds that have
    them. embed_dim: width of the first stage; it doubles from each to the next. Raises ValueError for other kinds, for
    a stem_stride that is none of 1, 2, 4, and a stage_stride, of the first stage, that is none of 1, 2.
    """

    blocks: ClassVar = {"conv": "C", "attention": "T", "maxvit": "M"}

    def __init__(
        self,
        *,
        img_size: int,
        stem_width: int,
        stem_stride: int,
        stage_stride: int,
        embed_dim: int,
        kinds: Sequence[str],
        depths: Sequence[int],
        expand_ratios: Sequence[int],
        window_sizes: Sequence[int],
        head_width: int,
        mlp_ratio: float,
        drop_path_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        if not self.blocks.keys() >= set(kinds):
            raise ValueError(f"kinds: {list(kinds)}: one is none of {', '.join(self.blocks)}")
        if stem_stride not in (1, 2, 4) or stage_stride not in (1, 2):
            raise ValueError(
                f"stem_stride {stem_stride} is none of 1, 2, 4, or stage_stride {stage_stride} of 1, 2"
            )
        # timm sets all stages alike, so that it makes stem and head here, about one small stage that is replaced.
        width = embed_dim * 2 ** (len(kinds) - 1)
        narrow = MaxxVitConvCfg(expand_ratio=1)
        small = MaxxVitCfg((width,), (1,), ("C",), stem_width, conv_cfg=narrow, head_hidden_size=width)
        super().__init__(small, img_size, **kwargs)
        inputs, side = stem_width, -(-img_size // (stem_stride * stage_stride))
        last = max(1, sum(depths) - 1)
        rates = iter([drop_path_rate * block / last for block in range(sum(depths))])
        stages: list[MaxxVitStage] = []
        shapes = zip(kinds, depths, expand_ratios, window_sizes, strict=True)
        for stage, (kind, depth, expand_ratio, window_size) in enumerate(shapes):
            own = MaxxVitStage(
                inputs,
                embed_dim * 2**stage,
                depth=depth,
                feat_size=(side, side),
                block_types=self.blocks[kind],
                transformer_cfg=MaxxVitTransformerCfg(
                    dim_head=head_width, expand_ratio=mlp_ratio, window_size=(window_size, window_size)
                ),
                conv_cfg=MaxxVitConvCfg(expand_ratio=expand_ratio),
                drop_path=[next(rates) for _ in range(depth)],
            )
            named_apply(partial(self._init_weights, scheme=small.weight_init), own)
            stages.append(own)
            inputs, side = embed_dim * 2**stage, -(-side // 2)
        self.stages = nn.Sequential(*stages)
        self._set_strides(stem_stride, stage_stride)

    def _set_strides(self, stem: int, first: int) -> None:
        once = min(stem, 2)
        _set_stride(self.stem.conv1, once)
        _set_stride(self.stem.conv2, stem // once)
        self.stem.stride = stem
        self.feature_info = [{"num_chs": self.stem.out_chs, "reduction": stem, "module": "stem"}]
        for stage, own in enumerate(self.stages):
            is_kept = stage == 0 and first == 1
            for part in list(own.modules()):
                if isinstance(part, Downsample2d):
                    part.pool = nn.Identity() if is_kept else nn.AvgPool2d(2, ceil_mode=True)
                elif isinstance(part, MbConvBlock) and is_kept:
                    _set_stride(part.conv2_kxk, 1)
            channels, reduction = self.num_features >> (len(self.stages) - 1 - stage), stem * first * 2**stage
            self.feature_info.append(
                {"num_chs": channels, "reduction": reduction, "module": f"stages.{stage}"}
            )


def _set_stride(layer: nn.Module, stride: int) -> None:
    assert isinstance(layer, nn.Conv2d)
    layer.stride = (stride, stride)


def paretovit_coatnet(pretrained: bool = False, **kwargs: Any) -> StagedMaxxVit:
    """Stages of convolution, attention or MaxViT's blocks, set like those of timm's `coatnet_0_224`."""
    return build_model_with_cfg(StagedMaxxVit, "paretovit_coatnet", pretrained, **kwargs)


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


ENTRY_POINTS = (
    paretovit_autoformer,
    paretovit_backbone_vit,
    paretovit_coatnet,
    paretovit_conv_stem_vit,
    paretovit_grid_vit,
    paretovit_resnet,
    paretovit_rotary_vit,
    paretovit_sincos_vit,
    paretovit_subsampled_vit,
    paretovit_unshifted_swin,
    paretovit_unshifted_swinv2,
    paretovit_windowed_vit,
)
