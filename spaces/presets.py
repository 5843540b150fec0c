"""Named spaces: what each family searches, by the size of the images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spaces.autoformer import per_block
from spaces.coatnet import per_stage
from spaces.dims import Choice, Domain, FloatRange, Grid, IntRange


@dataclass(frozen=True)
class Preset:
    """Domains by family and dimension. image_sizes: the sides in pixels that it is meant for, smallest and largest;
    example_size: the one that is shown when none is named.

    families: what is searched where no families are named. on_request: what others search when they are named. Stages
    and blocks that only a user's own values lead to have a range too.
    """

    image_sizes: tuple[int, int]
    example_size: int
    families: Mapping[str, Mapping[str, Domain | Grid]]
    on_request: Mapping[str, Mapping[str, Domain | Grid]] = field(default_factory=dict)


POOLING = Choice(("class_token", "average"))
_ATTENTION = Choice(("window", "grid", "subsampled"))
_BACKBONES = Choice(("resnet10t", "resnet14t", "resnet18", "convnext_atto"))
_PLACEMENT = Choice(("last", "first", "even"))
_TINY_ENCODER: Mapping[str, Domain | Grid] = {
    "depth": IntRange(1, 6),
    "heads": IntRange(1, 4),
    "head_width": IntRange(16, 32, 8),
    "mlp_ratio": FloatRange(1.0, 4.0, 0.5),
}
_SMALL_ENCODER: Mapping[str, Domain | Grid] = {
    "depth": IntRange(2, 12),
    "heads": IntRange(1, 6),
    "head_width": IntRange(32, 64, 16),
    "mlp_ratio": FloatRange(1.0, 4.0, 0.5),
}

_TINY_STAGES: Mapping[str, Domain] = {
    "num_stages": IntRange(2, 3),
    "depth_1": IntRange(1, 2),
    "depth_2": IntRange(1, 4),
    "depth_3": IntRange(1, 2),
    "depth_4": IntRange(1, 2),
    "heads": IntRange(1, 3),
    "head_width": IntRange(8, 24, 8),
    "mlp_ratio": FloatRange(1.0, 4.0, 0.5),
}
_SMALL_STAGES: Mapping[str, Domain] = {
    "num_stages": IntRange(2, 3),
    "depth_1": IntRange(1, 3),
    "depth_2": IntRange(1, 6),
    "depth_3": IntRange(1, 4),
    "depth_4": IntRange(1, 2),
    "heads": IntRange(1, 4),
    "head_width": IntRange(16, 32, 8),
    "mlp_ratio": FloatRange(1.0, 4.0, 0.5),
}

_BASE_ENCODER: Mapping[str, Domain | Grid] = {
    "depth": IntRange(4, 16),
    "heads": IntRange(2, 12),
    "head_width": IntRange(32, 64, 16),
    "mlp_ratio": FloatRange(2.0, 4.0, 0.5),
}
_BASE_STAGES: Mapping[str, Domain] = {
    "num_stages": IntRange(3, 4),
    "depth_1": IntRange(1, 3),
    "depth_2": IntRange(1, 4),
    "depth_3": IntRange(2, 18, 2),
    "depth_4": IntRange(1, 3),
    "heads": IntRange(2, 4),
    "head_width": IntRange(16, 32, 8),
    "mlp_ratio": FloatRange(2.0, 4.0, 0.5),
}
_BASE_WINDOW = Choice((5, 6, 7, 8, 12, 14, 16))

TINY = Preset(
    image_sizes=(8, 32),
    example_size=32,
    families={
        "vit": {
            "patch_size": Grid(2, 16),
            **_TINY_ENCODER,
            "pooling": POOLING,
        },
        "swin": {
            "patch_size": Grid(4, 16),
            "window": Choice((2, 4, 7, 8)),
            **_TINY_STAGES,
        },
        "hybrid": {
            "stride": Grid(2, 16),
            "stem_depth": IntRange(2, 4),
            "stem_width": IntRange(8, 32, 8),
            "depth": IntRange(1, 5),
            "heads": IntRange(1, 4),
            "head_width": IntRange(16, 32, 8),
            "mlp_ratio": FloatRange(1.0, 4.0, 0.5),
            "pooling": POOLING,
        },
    },
    on_request={
        "deit": {"patch_size": Grid(2, 16), **_TINY_ENCODER},
        "autoformer": {
            "patch_size": Grid(2, 16),
            "width": IntRange(32, 128, 16),
            "depth": IntRange(1, 6),
            **per_block(IntRange(1, 2), FloatRange(1.0, 4.0, 0.5)),
        },
        "windowed": {
            "patch_size": Grid(4, 16),
            **_TINY_ENCODER,
            "attention": _ATTENTION,
            "window": Choice((2, 4, 7, 8)),
            "kv_stride": IntRange(2, 4),
            "global_blocks": IntRange(0, 3),
            "global_placement": _PLACEMENT,
        },
        "swinv2": {
            "patch_size": Grid(4, 16),
            "window": Choice((2, 4, 7, 8)),
            **_TINY_STAGES,
        },
        "coatnet": {
            "stride": Grid(4, 16),
            "stem_width": IntRange(8, 32, 8),
            **_TINY_STAGES,
            **per_stage(IntRange(2, 4), IntRange(2, 8)),
        },
        "backbone": {
            "backbone": _BACKBONES,
            "stage": IntRange(0, 3),
            **_TINY_ENCODER,
            "pooling": POOLING,
        },
        "pit": {
            "stride": Grid(4, 16),
            "overlap": IntRange(1, 2),
            **_TINY_STAGES,
        },
    },
)

SMALL = Preset(
    image_sizes=(64, 128),
    example_size=64,
    families={
        "vit": {
            "patch_size": Grid(4, 16),
            **_SMALL_ENCODER,
            "pooling": POOLING,
        },
        "swin": {
            "patch_size": Grid(8, 32),
            "window": Choice((4, 6, 7, 8)),
            **_SMALL_STAGES,
        },
        "hybrid": {
            "stride": Grid(4, 16),
            "stem_depth": IntRange(3, 5),
            "stem_width": IntRange(16, 48, 8),
            "depth": IntRange(2, 10),
            "heads": IntRange(1, 6),
            "head_width": IntRange(32, 64, 16),
            "mlp_ratio": FloatRange(1.0, 4.0, 0.5),
            "pooling": POOLING,
        },
    },
    on_request={
        "deit": {"patch_size": Grid(4, 16), **_SMALL_ENCODER},
        "autoformer": {
            "patch_size": Grid(4, 16),
            "width": IntRange(64, 256, 32),
            "depth": IntRange(2, 12),
            **per_block(IntRange(1, 4), FloatRange(1.0, 4.0, 0.5)),
        },
        "windowed": {
            "patch_size": Grid(8, 32),
            **_SMALL_ENCODER,
            "attention": _ATTENTION,
            "window": Choice((4, 6, 7, 8)),
            "kv_stride": IntRange(2, 4),
            "global_blocks": IntRange(0, 4),
            "global_placement": _PLACEMENT,
        },
        "swinv2": {
            "patch_size": Grid(8, 32),
            "window": Choice((4, 6, 7, 8)),
            **_SMALL_STAGES,
        },
        "coatnet": {
            "stride": Grid(8, 32),
            "stem_width": IntRange(16, 64, 16),
            **_SMALL_STAGES,
            **per_stage(IntRange(2, 4), IntRange(2, 8)),
        },
        "backbone": {
            "backbone": _BACKBONES,
            "stage": IntRange(1, 3),
            **_SMALL_ENCODER,
            "pooling": POOLING,
        },
        "pit": {
            "stride": Grid(8, 32),
            "overlap": IntRange(1, 2),
            **_SMALL_STAGES,
        },
    },
)


BASE = Preset(
    image_sizes=(160, 256),
    example_size=224,
    families={
        "vit": {
            "patch_size": Grid(7, 16),
            **_BASE_ENCODER,
            "pooling": POOLING,
        },
        "swin": {
            "patch_size": Grid(28, 64),
            "window": _BASE_WINDOW,
            **_BASE_STAGES,
        },
        "hybrid": {
            "stride": Grid(5, 16),
            "stem_depth": IntRange(4, 6),
            "stem_width": IntRange(24, 64, 8),
            **_BASE_ENCODER,
            "pooling": POOLING,
        },
    },
    on_request={
        "deit": {"patch_size": Grid(7, 16), **_BASE_ENCODER},
        "autoformer": {
            "patch_size": Grid(7, 16),
            "width": IntRange(192, 640, 64),
            "depth": IntRange(8, 16),
            **per_block(IntRange(3, 10), FloatRange(2.0, 4.0, 0.5)),
        },
        "windowed": {
            "patch_size": Grid(14, 28),
            **_BASE_ENCODER,
            "attention": _ATTENTION,
            "window": Choice((5, 6, 7, 8, 14)),
            "kv_stride": IntRange(2, 4),
            "global_blocks": IntRange(0, 4),
            "global_placement": _PLACEMENT,
        },
        "swinv2": {
            "patch_size": Grid(28, 64),
            "window": _BASE_WINDOW,
            **_BASE_STAGES,
        },
        "coatnet": {
            "stride": Grid(20, 64),
            "stem_width": IntRange(32, 96, 32),
            **_BASE_STAGES,
            **per_stage(IntRange(2, 4), Choice((4, 5, 6, 7, 8, 14))),
            "kind_1": Choice(("conv", "maxvit")),
        },
        "backbone": {
            "backbone": Choice(("resnet18", "resnet34", "resnet50", "convnext_pico")),
            "stage": IntRange(2, 4),
            **_BASE_ENCODER,
            "pooling": POOLING,
        },
        "pit": {
            "stride": Grid(14, 32),
            "overlap": IntRange(1, 2),
            "num_stages": IntRange(2, 3),
            "depth_1": IntRange(1, 4),
            "depth_2": IntRange(2, 8),
            "depth_3": IntRange(2, 6),
            "depth_4": IntRange(1, 3),
            "heads": IntRange(2, 4),
            "head_width": IntRange(32, 64, 16),
            "mlp_ratio": FloatRange(2.0, 4.0, 0.5),
        },
    },
)


def _autoformer(width: IntRange, depth: IntRange, heads: IntRange, mlp_ratio: FloatRange) -> Preset:
    """A space of the paper, where 14 x 14 patches are 224 px; at other sizes it has as many patches."""
    shared: dict[str, Domain | Grid] = {"patch_size": Grid(14, 14), "width": width, "depth": depth}
    blocks = per_block(heads, mlp_ratio)
    return Preset(image_sizes=(224, 224), example_size=224, families={"autoformer": {**shared, **blocks}})


AUTOFORMER_TINY = _autoformer(
    IntRange(192, 240, 24), IntRange(12, 14), IntRange(3, 4), FloatRange(3.5, 4.0, 0.5)
)
AUTOFORMER_SMALL = _autoformer(
    IntRange(320, 448, 64), IntRange(12, 14), IntRange(5, 7), FloatRange(3.0, 4.0, 0.5)
)
AUTOFORMER_BASE = _autoformer(
    IntRange(528, 624, 48), IntRange(14, 16), IntRange(9, 10), FloatRange(3.0, 4.0, 0.5)
)
