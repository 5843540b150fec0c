"""Swin transformers (Liu et al., arXiv:2103.14030), built by timm's `SwinTransformer`.

Width and heads double from stage to stage, so that the head width stays; merging halves the map, rounding up.
A window larger than a stage's map is clipped to it (and not shifted) by timm, hence a window may not exceed the
first map: it would build the network of a smaller window. A map that its window does not divide is padded by timm
with zero tokens, which take part in attention; that is legal here and counted, as long as the padding adds at most
half to the tokens, on average over the stages (which cost alike: the width doubles as the map halves). The last map
has at least 2 x 2 tokens.

Every other block of a stage has its windows shifted by half their side, unless `shift` is false: then patches of
different windows meet only where four of them are merged. That is built by our entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spaces import stages
from spaces.costs import Analysis, Cost, attention, linear, mlp, norm, patches, total
from spaces.dims import Choice, Condition, Domain, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task
from spaces.vit import task_args

MODEL = "swin_tiny_patch4_window7_224"
UNSHIFTED = "paretovit_unshifted_swin"
MAX_PADDING = 1.5

FIXED: Mapping[str, Value] = {"shift": True}
"""Dimensions that are not searched unless they are named, and the value that each has then."""


def maps(grid: int, num_stages: int) -> list[int]:
    """Side of the token map in each stage, from the number of patches a side."""
    sides = [grid]
    while len(sides) < num_stages:
        sides.append((sides[-1] + 1) // 2)
    return sides


def padded(side: int, window: int) -> int:
    """Side of a map after timm has padded it to a multiple of the window."""
    return -(-side // window) * window


Part = Callable[..., Cost]


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of a SwinTransformer with one window size for all stages."""
    return analyse_stages(args, image_size, _block, _merging)


def analyse_stages(args: Mapping[str, Any], image_size: int, block: Part, merging: Part) -> Analysis:
    """Closed form of a network that is one but for its parts.

    block(side, window, width, heads, ratio): a block in a stage whose map has this side, and whose window fits it.
    merging(side, width): what leads into a stage, from maps of this width to one of this side, twice as wide.
    """
    grid = image_size // args["patch_size"]
    width = args["embed_dim"]
    cost = patches(grid, args["patch_size"], args["in_chans"], width) + norm(width)
    stages = zip(maps(grid, len(args["depths"])), args["depths"], args["num_heads"], strict=True)
    for stage, (side, depth, heads) in enumerate(stages):
        if stage:
            cost += merging(side, width)
            width *= 2
        cost += block(side, min(args["window_size"], side), width, heads, args["mlp_ratio"]) * depth
    head = linear(1, width, args["num_classes"]) if args["num_classes"] else Cost()
    return total(cost + norm(width) + head, grid * grid)


def _block(side: int, window: int, width: int, heads: int, ratio: float) -> Cost:
    windows = (padded(side, window) // window) ** 2
    biases = Cost(params=heads * (2 * window - 1) ** 2)
    mixed = attention(window * window, width, heads, windows, is_fused=False)
    return norm(width) * 2 + biases + mixed + mlp(side * side, width, ratio)


def _merging(side: int, width: int) -> Cost:
    return norm(4 * width) + linear(side * side, 4 * width, 2 * width, bias=False)


def published(heads: int, depth_3: int, window: int = 7) -> dict[str, Value]:
    """A network of four stages as in the papers."""
    depths: dict[str, Value] = {"depth_1": 2, "depth_2": 2, "depth_3": depth_3, "depth_4": 2}
    return {
        "patch_size": 4,
        "window": window,
        "num_stages": 4,
        **depths,
        "heads": heads,
        "head_width": 32,
        "mlp_ratio": 4.0,
    }


NAMED: dict[str, Mapping[str, Value]] = {
    "swin_tiny_patch4_window7_224": published(3, 6),
    "swin_small_patch4_window7_224": published(3, 18),
    "swin_base_patch4_window7_224": published(4, 18),
}


class Swin:
    """patch_size, window, num_stages, depth_1 .. depth_4 (of each stage there is), heads and head_width of the first
    stage, mlp_ratio; and those of `FIXED`."""

    name = "swin"
    model = MODEL
    unshifted = UNSHIFTED
    conditions: Mapping[str, Condition] = stages.CONDITIONS
    named: Mapping[str, Mapping[str, Value]] = NAMED

    def limits(self, task: Task) -> dict[str, Domain]:
        return {
            "patch_size": stages.strides(task),
            "window": IntRange(2, 64),
            **stages.limits(),
            "shift": Choice((False, True)),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        def last_map(values: Mapping[str, Any]) -> str | None:
            grid = task.image_size // values["patch_size"]
            side = maps(grid, values["num_stages"])[-1]
            if side >= 2:
                return None
            return f"{grid} x {grid} patches leave one token after {values['num_stages']} stages: use smaller patches"

        def window_fits(values: Mapping[str, Any]) -> str | None:
            grid, window = task.image_size // values["patch_size"], values["window"]
            if window > grid:
                return f"window {window} is larger than the map of {grid} x {grid} patches"
            sides = maps(grid, values["num_stages"])
            wide = [padded(side, min(window, side)) for side in sides]
            growth = sum((after / side) ** 2 for side, after in zip(sides, wide, strict=True)) / len(sides)
            if growth <= MAX_PADDING:
                return None
            shown = ", ".join(f"{side} to {after}" for side, after in zip(sides, wide, strict=True))
            return f"window {window} would pad the stages' maps from {shown} a side"

        return (
            Rule(("patch_size", "num_stages"), last_map),
            Rule(("patch_size", "window", "num_stages"), window_fits),
            *(_shift_is_missed(task, num_stages) for num_stages in range(2, stages.MAX_STAGES + 1)),
        )

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        model = self.model if {**FIXED, **values}["shift"] else self.unshifted
        stages = range(values["num_stages"])
        args = {
            "patch_size": values["patch_size"],
            "window_size": values["window"],
            "embed_dim": values["heads"] * values["head_width"],
            "depths": [values[f"depth_{stage + 1}"] for stage in stages],
            "num_heads": [values["heads"] * 2**stage for stage in stages],
            "mlp_ratio": float(values["mlp_ratio"]),
            **task_args(task),
        }
        return ArchSpec(model, args, task.image_size)


def _shift_is_missed(task: Task, num_stages: int) -> Rule:
    """Without a shift, some block of these stages has to lose one: else it is the network that has it."""
    depths = [f"depth_{stage}" for stage in range(1, num_stages + 1)]

    def check(values: Mapping[str, Any]) -> str | None:
        if values["shift"] or values["num_stages"] != num_stages:
            return None
        sides = maps(task.image_size // values["patch_size"], num_stages)
        if any(
            values[depth] > 1 and side > values["window"] for side, depth in zip(sides, depths, strict=True)
        ):
            return None
        return (
            "without shift it is the same network: no stage has two blocks and a map larger than its window"
        )

    return Rule(("patch_size", "window", "num_stages", *depths, "shift"), check)
