"""Parameters, FLOPs, tokens and activations of our families and baselines, in closed form (see `spaces.costs`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from spaces import hybrid, resnet, swin, vit
from spaces.costs import Analysis
from spaces.spec import ArchSpec, Task

__all__ = ["Analysis", "analyse", "knows"]

ClosedForm = Callable[[Mapping[str, Any], int], Analysis]
Known = tuple[ClosedForm, Mapping[str, Any], frozenset[str]]

_TASK = Task(image_size=224, channels=3, num_classes=1000)


def _known() -> dict[str, Known]:
    """Entry point -> its closed form, all arguments that it understands, and those of them that have no default."""
    encoder: dict[str, Any] = {"depth": 12, "heads": 12, "head_width": 64, "mlp_ratio": 4.0}
    stem: dict[str, Any] = {"stride": 16, "stem_depth": 4, "stem_width": 64, "pooling": "class_token"}
    ours: dict[str, Known] = {
        hybrid.MODEL: (
            hybrid.analyse,
            hybrid.Hybrid().spec(_TASK, {**stem, **encoder}).args,
            frozenset({"stem_channels", "stem_strides"}),
        ),
        resnet.MODEL: (
            resnet.analyse,
            resnet.resnet(_TASK, 64, 2).args,
            frozenset({"channels", "layers", "stem_stride"}),
        ),
    }
    nothing: frozenset[str] = frozenset()
    vits = {name: (vit.analyse, vit.ViT().spec(_TASK, own).args, nothing) for name, own in vit.NAMED.items()}
    swins = {
        name: (swin.analyse, swin.Swin().spec(_TASK, own).args, nothing) for name, own in swin.NAMED.items()
    }
    head = {"in_chans": _TASK.channels, "num_classes": _TASK.num_classes}
    resnets = {name: (partial(resnet.analyse_published, name), head, nothing) for name in resnet.LAYERS}
    return {**ours, **vits, **swins, **resnets}


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
        and all(_alike(value, defaults[key]) for key, value in args.items())
        and args.get("img_size", spec.image_size) == spec.image_size
        and len({len(value) for value in args.values() if isinstance(value, list)}) <= 1
    )


def analyse(spec: ArchSpec) -> Analysis:
    """The closed form of a network, for one image. Raises ValueError for a model that it does not know."""
    if not knows(spec):
        raise ValueError(f"no closed form for {spec.model} with arguments {sorted(spec.args)}")
    closed_form, defaults, _ = _MODELS[spec.model]
    return closed_form({**defaults, **spec.args}, spec.image_size)


def _alike(value: object, default: object) -> bool:
    """Whether an argument has the kind of its default: a positive number, a list of them, a switch, a pooling."""
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(default, str):
        return value in vit.POOLING.values()
    if isinstance(default, list):
        return isinstance(value, list) and bool(value) and all(_alike(each, 1) for each in value)
    numbers = (int, float) if isinstance(default, float) else (int,)
    return isinstance(value, numbers) and not isinstance(value, bool) and value > 0
