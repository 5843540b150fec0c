"""Transformers with pooled stages (PiT; Heo et al., arXiv:2103.16302), built by timm's `PoolingVisionTransformer`.

Patches overlap where they are larger than the stride from one to the next. Between stages a 3 x 3 convolution of each
channel by itself halves the map, rounding up, while width and heads double, so that the head width stays. The class
token goes along. The last map has at least 2 x 2 patches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaces import stages
from spaces.costs import Analysis, Cost, block, convolution, linear, norm, patches, total
from spaces.dims import Condition, Domain, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task
from spaces.swin import maps
from spaces.vit import task_args

MODEL = "pit_s_224"


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of a PoolingVisionTransformer."""
    grid = (image_size - args["patch_size"]) // args["stride"] + 1
    widths = [width * heads for width, heads in zip(args["base_dims"], args["heads"], strict=True)]
    cost = patches(grid, args["patch_size"], args["in_chans"], widths[0])
    cost += Cost(params=(grid * grid + 1) * widths[0])
    for stage, side in enumerate(maps(grid, len(widths))):
        width = widths[stage]
        if stage:
            cost += _pooling(side, widths[stage - 1], width)
        one = block(side * side + 1, width, args["heads"][stage], args["mlp_ratio"])
        cost += one * args["depth"][stage]
    head = linear(1, widths[-1], args["num_classes"]) if args["num_classes"] else Cost()
    return total(cost + norm(widths[-1]) + head, grid * grid + 1)


def _pooling(side: int, inputs: int, outputs: int) -> Cost:
    """What leads into a stage; side: of its map."""
    every_channel = convolution(side, 3, 1, outputs, bias=True)
    return every_channel + linear(1, inputs, outputs)


def _published(
    heads: int, head_width: int, depths: tuple[int, int, int], stride: int = 8
) -> dict[str, Value]:
    return {
        "stride": stride,
        "overlap": 2,
        "num_stages": 3,
        **{f"depth_{stage}": depth for stage, depth in enumerate(depths, start=1)},
        "heads": heads,
        "head_width": head_width,
        "mlp_ratio": 4.0,
    }


NAMED: dict[str, Mapping[str, Value]] = {
    "pit_ti_224": _published(2, 32, (2, 6, 4)),
    "pit_xs_224": _published(2, 48, (2, 6, 4)),
    "pit_s_224": _published(3, 48, (2, 6, 4)),
    "pit_b_224": _published(4, 64, (3, 6, 4), stride=7),
}


class PiT:
    """stride, overlap (side of a patch in strides), num_stages, depth_1 .. depth_4 (of each stage there is), heads and
    head_width of the first stage, mlp_ratio."""

    name = "pit"
    conditions: Mapping[str, Condition] = stages.CONDITIONS
    named: Mapping[str, Mapping[str, Value]] = NAMED

    def limits(self, task: Task) -> dict[str, Domain]:
        return {
            "stride": stages.strides(task),
            "overlap": IntRange(1, 3),
            **stages.limits(),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        def last_map(values: Mapping[str, Any]) -> str | None:
            grid = task.image_size // values["stride"] - values["overlap"] + 1
            if grid > 0 and maps(grid, values["num_stages"])[-1] >= 2:
                return None
            return (
                f"{max(grid, 0)} x {max(grid, 0)} patches leave less than 2 x 2 after {values['num_stages']} stages: "
                "use a smaller stride"
            )

        return (Rule(("stride", "overlap", "num_stages"), last_map),)

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        stages = range(values["num_stages"])
        args = {
            "patch_size": values["stride"] * values["overlap"],
            "stride": values["stride"],
            "base_dims": [values["head_width"] for _ in stages],
            "depth": [values[f"depth_{stage + 1}"] for stage in stages],
            "heads": [values["heads"] * 2**stage for stage in stages],
            "mlp_ratio": float(values["mlp_ratio"]),
            **task_args(task),
        }
        return ArchSpec(MODEL, args, task.image_size)
