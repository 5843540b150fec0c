"""Stages of convolution, attention or both (CoAtNet, MaxViT).

On torch and timm alone: an exported model carries this text along.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from timm.models import build_model_with_cfg, named_apply
from timm.models.maxxvit import (
    Downsample2d,
    MaxxVit,
    MaxxVitCfg,
    MaxxVitConvCfg,
    MaxxVitStage,
    MaxxVitTransformerCfg,
    MbConvBlock,
)
from torch import nn

default_cfgs: dict[str, dict[str, Any]] = {
    "paretovit_coatnet": {
        "url": "",
        "num_classes": 1000,
        "input_size": (3, 224, 224),
        "fixed_input_size": True,
        "first_conv": "stem.conv1",
        "classifier": "head.fc",
    },
}
"""timm looks here while it registers the entry points."""


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


ENTRY_POINTS = (paretovit_coatnet,)
