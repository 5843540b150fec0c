"""Parameters, FLOPs, tokens and activations of our families and baselines, in closed form (see `spaces.costs`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spaces import baselines, hybrid, swin, vit
from spaces.costs import Analysis
from spaces.spec import ArchSpec

__all__ = ["Analysis", "analyse", "knows"]

_TASK = {"img_size": 224, "in_chans": 3, "num_classes": 1000}
_VIT = {
    "patch_size": 16,
    "embed_dim": 768,
    "depth": 12,
    "num_heads": 12,
    "mlp_ratio": 4.0,
    "class_token": True,
    "global_pool": "token",
    **_TASK,
}
_SWIN = {
    "patch_size": 4,
    "window_size": 7,
    "embed_dim": 96,
    "depths": [2, 2, 6, 2],
    "num_heads": [3, 6, 12, 24],
    "mlp_ratio": 4.0,
    **_TASK,
}
_REQUIRED: Any = None
_HYBRID = {"stem_channels": _REQUIRED, "stem_strides": _REQUIRED, **_VIT}
_RESNET = {
    "channels": _REQUIRED,
    "layers": _REQUIRED,
    "stem_stride": _REQUIRED,
    "in_chans": 3,
    "num_classes": 1000,
}

# Entry point -> (closed form, every argument that it understands with timm's default).
_MODELS: dict[str, tuple[Callable[[Mapping[str, Any], int], Analysis], dict[str, Any]]] = {
    **{
        name: (
            vit.analyse,
            {
                **_VIT,
                "patch_size": values["patch_size"],
                "embed_dim": 64 * int(values["heads"]),
                "num_heads": values["heads"],
            },
        )
        for name, values in vit.NAMED.items()
    },
    **{
        name: (
            swin.analyse,
            {
                **_SWIN,
                "embed_dim": 32 * int(values["heads"]),
                "depths": [values[f"depth_{stage}"] for stage in (1, 2, 3, 4)],
                "num_heads": [int(values["heads"]) * 2**stage for stage in range(4)],
            },
        )
        for name, values in swin.NAMED.items()
    },
    hybrid.MODEL: (hybrid.analyse, {key: value for key, value in _HYBRID.items() if key != "patch_size"}),
    baselines.MODEL: (baselines.analyse, _RESNET),
}


def knows(spec: ArchSpec) -> bool:
    """Whether `analyse` has a closed form for the model with exactly these arguments."""
    if spec.model not in _MODELS:
        return False
    args = {**_MODELS[spec.model][1], **spec.args}
    return (
        args.keys() == _MODELS[spec.model][1].keys()
        and None not in args.values()
        and args.get("img_size", spec.image_size) == spec.image_size
        and args.get("global_pool", "avg") in ("token", "avg")
        and isinstance(args.get("window_size", 0), int)
    )


def analyse(spec: ArchSpec) -> Analysis:
    """The closed form of a network, for one image. Raises ValueError for a model that it does not know."""
    if not knows(spec):
        raise ValueError(f"no closed form for {spec.model} with arguments {sorted(spec.args)}")
    closed_form, defaults = _MODELS[spec.model]
    return closed_form({**defaults, **spec.args}, spec.image_size)
