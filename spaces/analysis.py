"""Parameters, FLOPs, tokens and activations of our families and baselines, in closed form (see `spaces.costs`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from spaces import autoformer, backbone, coatnet, deit, hybrid, pit, resnet, swin, swinv2, vit, windowed
from spaces.costs import Analysis
from spaces.sized import IMAGE_SIZE
from spaces.spec import ArchSpec, Task

__all__ = ["Analysis", "analyse", "knows"]

ClosedForm = Callable[[Mapping[str, Any], int], Analysis]
Known = tuple[ClosedForm, Mapping[str, Any], frozenset[str]]

_TASK = Task(image_size=224, channels=3, num_classes=1000)


def _known() -> dict[str, Known]:
    """Entry point -> its closed form, all arguments that it understands, and those of them that have no default."""
    encoder: dict[str, Any] = {"depth": 12, "heads": 12, "head_width": 64, "mlp_ratio": 4.0}
    stem: dict[str, Any] = {"stride": 16, "stem_depth": 4, "stem_width": 64, "pooling": "class_token"}
    place: dict[str, Any] = {"backbone": "resnet18", "stage": 0, "pooling": "class_token"}
    per_layer = autoformer.AutoFormer().spec(_TASK, autoformer.NAMED["autoformer_tiny"]).args
    ours: dict[str, Known] = {
        hybrid.MODEL: (
            hybrid.analyse,
            {**hybrid.Hybrid().spec(_TASK, {**stem, **encoder}).args, **hybrid.FIXED},
            frozenset({"stem_channels", "stem_strides"}),
        ),
        backbone.MODEL: (
            backbone.analyse,
            backbone.Backbone().spec(_TASK, {**place, **encoder}).args,
            frozenset({"backbone", "stage"}),
        ),
        autoformer.MODEL: (
            autoformer.analyse,
            per_layer,
            frozenset(per_layer) - {"in_chans", "num_classes"},
        ),
        resnet.MODEL: (
            resnet.analyse,
            resnet.resnet(_TASK, 64, 2).args,
            frozenset({"channels", "layers", "stem_stride"}),
        ),
    }
    nothing: frozenset[str] = frozenset()
    vits = {
        name: (vit.analyse, {**vit.ViT().spec(_TASK, own).args, **vit.OPTIONAL}, nothing)
        for name, own in vit.NAMED.items()
    }
    pits = {name: (pit.analyse, pit.PiT().spec(_TASK, own).args, nothing) for name, own in pit.NAMED.items()}
    head = {"in_chans": _TASK.channels, "num_classes": _TASK.num_classes}
    resnets = {name: (partial(resnet.analyse_published, name), head, nothing) for name in resnet.PUBLISHED}
    return {
        **ours,
        **vits,
        **_other_positions(),
        **_distilled(),
        **_windowed(),
        **_swins(),
        **pits,
        **_coatnets(),
        **resnets,
    }


def _other_positions() -> dict[str, Known]:
    """Plain transformers whose positions are not timm's learned ones."""
    family = vit.ViT()
    plain = family.spec(_TASK, vit.NAMED[vit.MODEL]).args
    relative = family.spec(_TASK, {**vit.NAMED[vit.MODEL], "positions": "relative"}).args
    ours = {
        **plain,
        **{key: vit.OPTIONAL[key] for key in vit.OPTIONAL.keys() - {"pos_embed", "no_embed_class"}},
    }
    scaled = {"init_values": vit.LAYER_SCALE}
    rotary = {
        name: (vit.analyse_unplaced, {**family.spec(_TASK, own).args, **scaled}, frozenset[str]())
        for name, own in vit.NAMED_ROTARY.items()
    }
    return {
        vit.SINCOS: (vit.analyse_unplaced, ours, frozenset(plain)),
        vit.ROTARY: (vit.analyse_unplaced, ours, frozenset(plain)),
        vit.RELATIVE: (vit.analyse_relative, relative, frozenset(relative)),
        **rotary,
    }


def _distilled() -> dict[str, Known]:
    optional = {key: vit.OPTIONAL[key] for key in vit.block_args(vit.BLOCK_FIXED)}
    return {
        name: (deit.analyse, {**deit.DeiT().spec(_TASK, own).args, **optional}, frozenset())
        for name, own in deit.NAMED.items()
    }


def _swins() -> dict[str, Known]:
    first = {
        name: (swin.analyse, swin.Swin().spec(_TASK, own).args, frozenset[str]())
        for name, own in swin.NAMED.items()
    }
    second = {
        name: (
            swinv2.analyse,
            swinv2.SwinV2().spec(replace(_TASK, image_size=own[IMAGE_SIZE]), own).args,
            frozenset[str](),
        )
        for name, own in swinv2.NAMED.items()
    }
    args = first[swin.MODEL][1]
    return {
        **first,
        **second,
        swin.UNSHIFTED: (swin.analyse, args, frozenset(args)),
        swinv2.UNSHIFTED: (swinv2.analyse, args, frozenset(args)),
    }


def _coatnets() -> dict[str, Known]:
    stages = {"num_stages": 2, "kind_1": "attention", "kind_2": "maxvit", "expand_2": 4, "window_2": 7}
    shape = {
        "stride": 4,
        "stem_width": 64,
        "depth_1": 2,
        "depth_2": 2,
        "heads": 2,
        "head_width": 32,
        "mlp_ratio": 4.0,
    }
    ours = coatnet.CoAtNet().spec(_TASK, {**stages, **shape}).args
    published = {key: ours[key] for key in ("img_size", "in_chans", "num_classes")}
    return {
        coatnet.MODEL: (coatnet.analyse, ours, frozenset(ours)),
        **{
            name: (partial(coatnet.analyse_published, name), published, frozenset()) for name in coatnet.NAMED
        },
    }


def _windowed() -> dict[str, Known]:
    base = {
        "patch_size": 16,
        "depth": 12,
        "heads": 12,
        "head_width": 64,
        "mlp_ratio": 4.0,
        "global_blocks": 4,
    }
    placed = {**base, "global_placement": "even", "window": 14, "kv_stride": 2}

    def args(kind: str) -> Mapping[str, Any]:
        return {**windowed.Windowed().spec(_TASK, {**placed, "attention": kind}).args, **windowed.DEFAULTS}

    required = frozenset(args("grid")) - windowed.DEFAULTS.keys()
    subsampled = frozenset(args("subsampled")) - windowed.DEFAULTS.keys()
    return {
        windowed.TIMM: (windowed.analyse, args("window"), frozenset()),
        windowed.WINDOW: (windowed.analyse, args("window"), required),
        windowed.GRID: (windowed.analyse, args("grid"), required),
        windowed.SUBSAMPLED: (windowed.analyse_subsampled, args("subsampled"), subsampled),
    }


_MODELS = _known()


def knows(spec: ArchSpec) -> bool:
    """Whether `analyse` has a closed form for the model with exactly these arguments."""
    if spec.model not in _MODELS:
        return False
    _, defaults, required = _MODELS[spec.model]
    args = {**defaults, **spec.args}
    return (
        args.keys() == defaults.keys()
        and required <= spec.args.keys()
        and all(_alike(key, value, defaults[key]) for key, value in args.items())
        and args.get("img_size", spec.image_size) == spec.image_size
        and len({len(value) for value in args.values() if isinstance(value, list)}) <= 1
        and (spec.model != backbone.MODEL or backbone.has(args, spec.image_size))
    )


def analyse(spec: ArchSpec) -> Analysis:
    """The closed form of a network, for one image. Raises ValueError for a model that it does not know."""
    if not knows(spec):
        raise ValueError(f"no closed form for {spec.model} with arguments {sorted(spec.args)}")
    closed_form, defaults, _ = _MODELS[spec.model]
    return closed_form({**defaults, **spec.args}, spec.image_size)


def _alike(key: str, value: object, default: object) -> bool:
    """Whether an argument has the kind of its default: a number, a list of them, a switch, a word that is known."""
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(default, str):
        return value in _WORDS[key]
    if key in _INDEXES:
        return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)
    if isinstance(default, list):
        return (
            isinstance(value, list) and bool(value) and all(_alike(key, each, default[0]) for each in value)
        )
    if key in _MAY_BE_NONE and value is None:
        return True
    numbers = (int, float) if isinstance(default, float) or key in _MAY_BE_NONE else (int,)
    low = 0 if default == 0 else _SMALLEST
    return isinstance(value, numbers) and not isinstance(value, bool) and value >= low


_WORDS = {
    "backbone": tuple(backbone.KNOWN),
    "global_pool": tuple(vit.POOLING.values()),
    "pos_embed": ("learn", "none"),
    "stem_norm": hybrid.NORMS,
    "stem_activation": hybrid.ACTIVATIONS,
    "kinds": coatnet.KINDS,
    "rel_pos_type": ("bias",),
}
_INDEXES = ("global_attn_indexes",)
_MAY_BE_NONE = ("init_values",)
_SMALLEST = 1e-9
