"""Plain transformers with a distillation token (DeiT; Touvron et al., arXiv:2012.12877), built by timm.

A second token beside the class token has a classifier of its own, for a teacher's answers. timm's network gives the
mean of both classifiers, in training too, until a recipe that distils asks for both (`set_distilled_training`): so
without a teacher both learn from the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spaces import vit
from spaces.costs import Analysis, Cost, linear
from spaces.dims import Condition, Domain, Rule, Value
from spaces.spec import ArchSpec, Task

MODEL = "deit_base_distilled_patch16_224"


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of a VisionTransformerDistilled."""
    grid, width = image_size // args["patch_size"], args["embed_dim"]
    own = {"class_token": True, "reg_tokens": 1}
    known = vit.analyse({**args, **own}, image_size)
    head = linear(1, width, args["num_classes"]) if args["num_classes"] else Cost()
    return replace(
        known,
        params=known.params + head.params,
        flops=known.flops + head.flops,
        tokens=grid * grid + 2,
        activations=known.activations + head.activations,
    )


def _published(name: str) -> Mapping[str, Value]:
    return {key: value for key, value in vit.NAMED[name].items() if key != "pooling"}


NAMED: dict[str, Mapping[str, Value]] = {
    f"deit_{size}_distilled_patch16_224": _published(f"deit_{size}_patch16_224")
    for size in ("tiny", "small", "base")
}


def has_token(model: str) -> bool:
    """Whether an entry point of timm builds a network with a distillation token."""
    return model in NAMED


class DeiT:
    """patch_size, depth, heads, head_width, mlp_ratio; and those of `vit.BLOCK_FIXED`."""

    name = "deit"
    conditions: Mapping[str, Condition] = {}
    named: Mapping[str, Mapping[str, Value]] = NAMED

    def limits(self, task: Task) -> dict[str, Domain]:
        encoder = {key: domain for key, domain in vit.encoder_limits().items() if key != "pooling"}
        return {"patch_size": vit.patch_sizes(task), **encoder, **vit.block_limits()}

    def rules(self, task: Task) -> Sequence[Rule]:
        return ()

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        encoder = vit.encoder_args({**values, "pooling": "class_token"})
        args = {
            "patch_size": values["patch_size"],
            **{key: value for key, value in encoder.items() if key not in ("class_token", "global_pool")},
            **vit.task_args(task),
            **vit.unusual(vit.block_args({**vit.BLOCK_FIXED, **values})),
        }
        return ArchSpec(MODEL, args, task.image_size)
