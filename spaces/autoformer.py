"""Plain transformers whose blocks differ (AutoFormer; Chen et al., arXiv:2107.00651), built by our entry point.

Every block has heads and an MLP ratio of its own; width and depth are shared. A head is 64 wide, so attention inside a
block is 64 x its heads wide, whatever the width of the network. Keys and values know their place relative to the query,
row and column apart, up to 14 patches away, and there are learned absolute positions. A class token goes along; the
classifier reads the mean of the patches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaces.costs import Analysis, Cost, linear, mixing, mlp, norm, patches, total
from spaces.dims import Condition, Domain, FloatRange, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task
from spaces.vit import patch_sizes, task_args

MODEL = "paretovit_autoformer"
HEAD_WIDTH = 64
MAX_DEPTH = 24
MAX_DISTANCE = 14


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of the entry point."""
    grid, width = image_size // args["patch_size"], args["embed_dim"]
    tokens = grid * grid + 1
    cost = patches(grid, args["patch_size"], args["in_chans"], width)
    cost += Cost(params=(tokens + 1) * width)
    for heads, ratio in zip(args["num_heads"], args["mlp_ratios"], strict=True):
        cost += (
            norm(width) * 2 + _attention(grid, width, heads, args["max_distance"]) + mlp(tokens, width, ratio)
        )
    head = linear(1, width, args["num_classes"]) if args["num_classes"] else Cost()
    return total(cost + norm(width) + head, tokens)


def _attention(grid: int, width: int, heads: int, max_distance: int) -> Cost:
    patches, inner = grid * grid, heads * HEAD_WIDTH
    tokens = patches + 1
    mixed = mixing(tokens, tokens, inner, heads, is_fused=False)
    relative = Cost(
        params=4 * (2 * max_distance + 2) * HEAD_WIDTH,
        flops=8 * patches * grid * inner,
        activations=2 * heads * patches * grid + 2 * patches * inner,
    )
    return linear(tokens, width, 3 * inner) + mixed + relative + linear(tokens, inner, width)


def _found(width: int, heads: str, ratios: Sequence[float]) -> dict[str, Value]:
    """A sub-network; heads: one digit a block, where `x` is 10."""
    per_block: dict[str, Value] = {}
    for block, (digit, ratio) in enumerate(zip(heads, ratios, strict=True), start=1):
        per_block[f"heads_{block}"] = 10 if digit == "x" else int(digit)
        per_block[f"mlp_ratio_{block}"] = ratio
    return {"patch_size": 16, "width": width, "depth": len(ratios), **per_block}


NAMED: dict[str, Mapping[str, Value]] = {
    "autoformer_tiny": _found(
        192, "3333333333433", (3.5, 3.5, 3.0, 3.5, 3.0, 3.0, 4.0, 4.0, 3.5, 4.0, 3.5, 4.0, 3.5)
    ),
    "autoformer_small": _found(
        384, "6657555667767", (3.0, 3.5, 3.0, 3.5, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 3.5, 4.0)
    ),
    "autoformer_base": _found(
        576, "99999x99x9x99x", (3.5, 3.5, 4.0, 3.5, 4.0, 3.5, 3.5, 3.0, 4.0, 4.0, 3.0, 4.0, 3.0, 3.5)
    ),
}
"""The sub-networks that were published as found (github.com/microsoft/Cream, AutoFormer/experiments/subnet)."""


def per_block(heads: Domain, mlp_ratio: Domain) -> dict[str, Domain]:
    """The dimensions of every block that there may be, with the same values in all of them."""
    found: dict[str, Domain] = {}
    for block in range(1, MAX_DEPTH + 1):
        found |= {f"heads_{block}": heads, f"mlp_ratio_{block}": mlp_ratio}
    return found


class AutoFormer:
    """patch_size, width, depth; heads_1 and mlp_ratio_1, heads_2 and mlp_ratio_2, ... of each block there is."""

    name = "autoformer"
    conditions: Mapping[str, Condition] = {
        f"{key}_{block}": ("depth", tuple(range(block, MAX_DEPTH + 1)))
        for block in range(2, MAX_DEPTH + 1)
        for key in ("heads", "mlp_ratio")
    }
    named: Mapping[str, Mapping[str, Value]] = NAMED

    def limits(self, task: Task) -> dict[str, Domain]:
        return {
            "patch_size": patch_sizes(task),
            "width": IntRange(8, 1536, 8),
            "depth": IntRange(1, MAX_DEPTH),
            **per_block(IntRange(1, 24), FloatRange(0.25, 8.0, 0.25)),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        return ()

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        blocks = range(1, values["depth"] + 1)
        args = {
            "patch_size": values["patch_size"],
            "embed_dim": values["width"],
            "num_heads": [values[f"heads_{block}"] for block in blocks],
            "mlp_ratios": [float(values[f"mlp_ratio_{block}"]) for block in blocks],
            "max_distance": min(MAX_DISTANCE, task.image_size // values["patch_size"]),
            **task_args(task),
        }
        return ArchSpec(MODEL, args, task.image_size)
