"""Plain vision transformers (Dosovitskiy et al., arXiv:2010.11929), built by timm.

The width is heads x head width. Patches divide the image; at least 2 x 2 of them, because attention over one token
mixes nothing and its heads would be a dimension that does nothing.

What `FIXED` names is searched only where a user names it, and has the value that stands there otherwise; a spec says
nothing of it then. By the kind of positions, timm builds another network: `VisionTransformer` for learned ones, none
and (through our entry point) fixed sines and cosines of both coordinates; `VisionTransformerRelPos` for a bias by
relative position in every block (as in Swin), which knows no registers; `Eva`, through our entry point, for axial
rotary positions (RoPE-ViT, arXiv:2403.13298). Registers (arXiv:2309.16588) are tokens that nothing reads out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spaces.costs import Analysis, Cost, block, linear, norm, patches, total
from spaces.dims import Choice, Condition, Domain, FloatRange, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task

MODEL = "vit_base_patch16_224"
SINCOS = "paretovit_sincos_vit"
RELATIVE = "vit_relpos_base_patch16_224"
ROTARY = "paretovit_rotary_vit"

POOLING = {"class_token": "token", "average": "avg"}
POSITIONS = ("learned", "none", "sincos", "relative", "rotary")
MAX_GRID = 64
LAYER_SCALE = 1e-5
"""First value of every scale, as in timm's own models."""

BLOCK_FIXED: Mapping[str, Value] = {"qk_norm": False, "layer_scale": False, "qkv_bias": True}
FIXED: Mapping[str, Value] = {"positions": "learned", "registers": 0, **BLOCK_FIXED}
"""Dimensions that are not searched unless they are named, and the value that each has then."""


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


def block_limits() -> dict[str, Domain]:
    """The dimensions of `BLOCK_FIXED`."""
    return {key: Choice((False, True)) for key in BLOCK_FIXED}


def block_args(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of timm's VisionTransformer for the dimensions of `BLOCK_FIXED`."""
    return {
        "qk_norm": values["qk_norm"],
        "init_values": LAYER_SCALE if values["layer_scale"] else None,
        "qkv_bias": values["qkv_bias"],
    }


def task_args(task: Task) -> dict[str, Any]:
    """What every spec of ours says about the task."""
    return {"img_size": task.image_size, "in_chans": task.channels, "num_classes": task.num_classes}


OPTIONAL: Mapping[str, Any] = {
    "reg_tokens": 0,
    "pos_embed": "learn",
    "no_embed_class": False,
    "qk_norm": False,
    "init_values": None,
    "qkv_bias": True,
}
"""Arguments of timm's VisionTransformer that a spec leaves out where they have these values."""


def unusual(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `OPTIONAL` that a spec has to name."""
    return {key: value for key, value in args.items() if value != OPTIONAL[key]}


def encoder_cost(args: Mapping[str, Any], count: int) -> tuple[Cost, int]:
    """Cost of everything behind the patch embedding, and the number of tokens.

    args: those of timm's VisionTransformer; those of `OPTIONAL` may be left out. count: of patches.
    """
    args = {**OPTIONAL, **args}
    width, heads = args["embed_dim"], args["num_heads"]
    prefix = args["reg_tokens"] + bool(args["class_token"])
    tokens = count + prefix
    placed = 0 if args["pos_embed"] == "none" else count if args["no_embed_class"] else tokens
    positions = Cost(params=(placed + prefix) * width)
    one = block(tokens, width, heads, args["mlp_ratio"], args["qkv_bias"])
    if args["qk_norm"]:
        one += norm(width // heads) * 2
    if args["init_values"]:
        one += Cost(params=2 * width)
    head = linear(1, width, args["num_classes"]) if args["num_classes"] else Cost()
    return positions + one * args["depth"] + norm(width) + head, tokens


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of a plain VisionTransformer."""
    grid = image_size // args["patch_size"]
    embed = patches(grid, args["patch_size"], args["in_chans"], args["embed_dim"])
    encoder, tokens = encoder_cost(args, grid * grid)
    return total(embed + encoder, tokens)


def analyse_unplaced(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of our entry points, whose positions are no parameters."""
    return analyse({**args, "pos_embed": "none"}, image_size)


def analyse_relative(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of a VisionTransformerRelPos of type `bias`."""
    plain = analyse_unplaced(args, image_size)
    grid = image_size // args["patch_size"]
    biases = args["num_heads"] * ((2 * grid - 1) ** 2 + 3 * bool(args["class_token"]))
    return replace(plain, params=plain.params + biases * args["depth"])


def _published(heads: int, patch_size: int = 16, depth: int = 12) -> dict[str, Value]:
    return {
        "patch_size": patch_size,
        "depth": depth,
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
_ROTARY: dict[str, Value] = {"positions": "rotary", "layer_scale": True}
NAMED_ROTARY: dict[str, Mapping[str, Value]] = {
    "vit_small_patch16_rope_224": {**_published(6), **_ROTARY},
    "vit_base_patch16_rope_224": {**_published(12), **_ROTARY},
    "vit_large_patch16_rope_224": {**_published(16, depth=24), **_ROTARY},
}


class ViT:
    """patch_size, depth, heads, head_width, mlp_ratio, pooling; and those of `FIXED`."""

    name = "vit"
    conditions: Mapping[str, Condition] = {}
    named: Mapping[str, Mapping[str, Value]] = {**NAMED, **NAMED_ROTARY}

    def limits(self, task: Task) -> dict[str, Domain]:
        return {
            "patch_size": patch_sizes(task),
            **encoder_limits(),
            "positions": Choice(POSITIONS),
            "registers": IntRange(0, 16),
            **block_limits(),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        def registers_have_no_place(values: Mapping[str, Any]) -> str | None:
            if values["positions"] != "relative" or not values["registers"]:
                return None
            return f"relative positions know no registers, and there are {values['registers']}"

        return (Rule(("positions", "registers"), registers_have_no_place),)

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        chosen = {**FIXED, **values}
        args = {"patch_size": chosen["patch_size"], **encoder_args(chosen), **task_args(task)}
        if chosen["positions"] == "relative":
            return ArchSpec(RELATIVE, {**args, **_relative(chosen)}, task.image_size)
        model = {"sincos": SINCOS, "rotary": ROTARY}.get(chosen["positions"], MODEL)
        return ArchSpec(
            model, {**args, **unusual(_tokens(chosen)), **unusual(block_args(chosen))}, task.image_size
        )


def _tokens(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of timm's VisionTransformer for positions and registers."""
    positions, registers = chosen["positions"], chosen["registers"]
    return {
        "reg_tokens": registers,
        "pos_embed": "none" if positions == "none" else "learn",
        "no_embed_class": positions == "learned" and registers > 0,
    }


def _relative(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Further arguments of a VisionTransformerRelPos, whose own defaults are others."""
    fc_norm = chosen["pooling"] == "average"
    block = {**block_args(chosen), "init_values": LAYER_SCALE if chosen["layer_scale"] else 0.0}
    return {"rel_pos_type": "bias", "fc_norm": fc_norm, **block}
