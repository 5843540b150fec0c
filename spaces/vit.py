"""Plain vision transformers (Dosovitskiy et al., arXiv:2010.11929), built by timm's `VisionTransformer`.

The width is heads x head width. Patches divide the image; at least 2 x 2 of them, because attention over one token
mixes nothing and its heads would be a dimension that does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaces.costs import Analysis, Cost, block, convolution, linear, norm, total
from spaces.dims import Choice, Condition, Domain, FloatRange, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task

MODEL = "vit_base_patch16_224"
POOLING = {"class_token": "token", "average": "avg"}
MAX_GRID = 64


def patch_sizes(task: Task) -> Choice:
    """Divisors of the image side that leave 2 to 64 patches a side."""
    side = task.image_size
    sizes = (size for size in range(1, side // 2 + 1) if side % size == 0)
    return Choice(tuple(size for size in sizes if side // size <= MAX_GRID))


def encoder_limits() -> dict[str, Domain]:
    """The dimensions of the transformer behind whatever makes the tokens."""
    return {
        "depth": IntRange(1, 64),
        "heads": IntRange(1, 64),
        "head_width": IntRange(4, 256, 4),
        "mlp_ratio": FloatRange(0.25, 8.0, 0.25),
        "pooling": Choice(tuple(POOLING)),
    }


def encoder_args(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of timm's VisionTransformer for the dimensions of `encoder_limits`."""
    return {
        "embed_dim": values["heads"] * values["head_width"],
        "depth": values["depth"],
        "num_heads": values["heads"],
        "mlp_ratio": float(values["mlp_ratio"]),
        "class_token": values["pooling"] == "class_token",
        "global_pool": POOLING[values["pooling"]],
    }


def task_args(task: Task) -> dict[str, Any]:
    """What every spec of ours says about the task."""
    return {"img_size": task.image_size, "in_chans": task.channels, "num_classes": task.num_classes}


def encoder_cost(args: Mapping[str, Any], patches: int) -> tuple[Cost, int]:
    """Cost of everything behind the patch embedding, and the number of tokens."""
    width = args["embed_dim"]
    tokens = patches + bool(args["class_token"])
    positions = Cost(params=tokens * width + width * bool(args["class_token"]))
    blocks = block(tokens, width, args["num_heads"], args["mlp_ratio"]) * args["depth"]
    head = linear(1, width, args["num_classes"]) if args["num_classes"] else Cost()
    return positions + blocks + norm(width) + head, tokens


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of a plain VisionTransformer."""
    grid = image_size // args["patch_size"]
    embed = convolution(grid, args["patch_size"], args["in_chans"], args["embed_dim"], bias=True)
    encoder, tokens = encoder_cost(args, grid * grid)
    return total(embed + encoder, tokens)


def _published(heads: int, patch_size: int = 16) -> dict[str, Value]:
    return {
        "patch_size": patch_size,
        "depth": 12,
        "heads": heads,
        "head_width": 64,
        "mlp_ratio": 4.0,
        "pooling": "class_token",
    }


NAMED: dict[str, Mapping[str, Value]] = {
    "vit_tiny_patch16_224": _published(3),
    "vit_small_patch16_224": _published(6),
    "vit_small_patch32_224": _published(6, 32),
    "vit_base_patch16_224": _published(12),
    "vit_base_patch32_224": _published(12, 32),
    "deit_tiny_patch16_224": _published(3),
    "deit_small_patch16_224": _published(6),
    "deit_base_patch16_224": _published(12),
}


class ViT:
    """patch_size, depth, heads, head_width, mlp_ratio, pooling."""

    name = "vit"
    conditions: Mapping[str, Condition] = {}
    named: Mapping[str, Mapping[str, Value]] = NAMED

    def limits(self, task: Task) -> dict[str, Domain]:
        return {"patch_size": patch_sizes(task), **encoder_limits()}

    def rules(self, task: Task) -> Sequence[Rule]:
        return ()

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        args = {"patch_size": values["patch_size"], **encoder_args(values), **task_args(task)}
        return ArchSpec(MODEL, args, task.image_size)
