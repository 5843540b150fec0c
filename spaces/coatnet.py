"""Stages of convolution, of attention, or of both (CoAtNet, Dai et al., arXiv:2106.04803; MaxViT, Tu et al.,
arXiv:2204.01697), of the blocks of timm's `MaxxVit`, through our entry point.

What the blocks of a stage are is its kind: `conv`, MBConv (a 1 x 1 convolution that widens, a 3 x 3 one of every
channel by itself, squeeze-and-excitation, a 1 x 1 one that narrows); `attention`, over the whole map, with a learned
bias for every distance of rows and columns; `maxvit`, an MBConv, attention inside windows and attention inside grids
(positions spread evenly over the map), both of `window_N` x `window_N`. One stage at least has attention.

A stem of two 3 x 3 convolutions and the first block of the first stage reduce the image by `stride` together; the
first block of every other stage halves the map, rounding up, as the width doubles. The last map has at least 2 x 2
positions, global attention sees 64 x 64 at most, and `maxvit` 4 x 4 at least, since smaller maps have no part to
attend to. The mean of the last map goes through a hidden layer of its width to the classifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaces import stages
from spaces.costs import Analysis, Cost, attention, convolution, linear, mlp, norm, total
from spaces.dims import Check, Choice, Condition, Domain, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task
from spaces.swin import maps
from spaces.vit import MAX_GRID, task_args

MODEL = "paretovit_coatnet"

KINDS = ("conv", "attention", "maxvit")
REDUCTIONS = {1: (1, 1), 2: (2, 1), 4: (2, 2), 8: (4, 2)}
"""Stride of the whole -> strides of the stem and of the first stage."""

MIN_PARTED = 4
"""Side of the least map with windows or grids."""

_STAGES = range(1, stages.MAX_STAGES + 1)


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of the entry point."""
    channels, width, tokens = args["stem_width"], args["embed_dim"], 0
    before = -(-image_size // args["stem_stride"])
    between = -(-image_size // min(2, args["stem_stride"]))
    cost = convolution(between, 3, args["in_chans"], channels) + norm(channels)
    cost += convolution(before, 3, channels, channels)
    sides = maps(-(-before // args["stage_stride"]), len(args["kinds"]))
    for stage, side in enumerate(sides):
        for block in range(args["depths"][stage]):
            cost += _block(args, stage, before, side, channels, width, halves=block == 0)
            before, channels = side, width
        if args["kinds"][stage] != "conv":
            tokens = tokens or side * side
        width *= 2
    hidden = linear(1, channels, channels)
    head = linear(1, channels, args["num_classes"]) if args["num_classes"] else Cost()
    return total(cost + norm(channels) + hidden + head, tokens)


def _block(
    args: Mapping[str, Any], stage: int, before: int, side: int, inputs: int, width: int, halves: bool
) -> Cost:
    """A block from a map of `before` x `before` with `inputs` channels to one of `side` x `side` with `width`; halves:
    whether it is the first of its stage, beside which the map is pooled."""
    kind, heads, ratio = args["kinds"][stage], width // args["head_width"], args["mlp_ratio"]
    is_widened = halves and inputs != width
    if kind == "attention":
        shortcut = linear(side * side, inputs, width) if is_widened else Cost()
        one = norm(inputs) + _attention(side, 1, inputs, width, heads) + norm(width)
        return shortcut + one + mlp(side * side, width, ratio)
    cost = convolution(side, 1, inputs, width, bias=True) if is_widened else Cost()
    cost += _mbconv(before, side, inputs, args["expand_ratios"][stage], width)
    if kind == "maxvit":
        window = args["window_sizes"][stage]
        mixed = _attention(window, (side // window) ** 2, width, width, heads)
        cost += (norm(width) * 2 + mixed + mlp(side * side, width, ratio)) * 2
    return cost


def _mbconv(before: int, side: int, inputs: int, expand: int, width: int) -> Cost:
    wide, squeezed = expand * width, width // 4
    excitation = linear(1, wide, squeezed) + linear(1, squeezed, wide)
    widen = norm(inputs) + convolution(before, 1, inputs, wide) + norm(wide)
    depthwise = convolution(side, 3, 1, wide) + norm(wide)
    return widen + depthwise + excitation + convolution(side, 1, wide, width, bias=True)


def _attention(side: int, windows: int, inputs: int, width: int, heads: int) -> Cost:
    """Inside each of `windows` squares of `side` x `side` positions; queries, keys and values come of `inputs`
    channels."""
    everywhere = side * side * windows
    biases = Cost(params=heads * (2 * side - 1) ** 2)
    own = attention(side * side, width, heads, windows)
    if inputs == width:
        return own + biases
    projected, wanted = linear(everywhere, width, 3 * width), linear(everywhere, inputs, 3 * width)
    fewer = Cost(wanted.params - projected.params, wanted.flops - projected.flops)
    return own + fewer + biases


def analyse_published(name: str, args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form of one of timm's own networks, from img_size, in_chans and num_classes."""
    task = Task(image_size, args["in_chans"], args["num_classes"])
    return analyse(CoAtNet().spec(task, NAMED[name]).args, image_size)


def _published(stem_width: int, heads: int, depths: Sequence[int]) -> dict[str, Value]:
    kinds = ("conv", "conv", "attention", "attention")
    return {
        "stride": 4,
        "stem_width": stem_width,
        "num_stages": len(kinds),
        **{f"kind_{stage}": kind for stage, kind in enumerate(kinds, start=1)},
        **{f"depth_{stage}": depth for stage, depth in enumerate(depths, start=1)},
        **{f"expand_{stage}": 4 for stage, kind in enumerate(kinds, start=1) if kind == "conv"},
        "heads": heads,
        "head_width": 32,
        "mlp_ratio": 4.0,
    }


NAMED: dict[str, Mapping[str, Value]] = {
    "coatnet_0_224": _published(64, 3, (2, 3, 5, 2)),
    "coatnet_1_224": _published(64, 3, (2, 6, 14, 2)),
    "coatnet_2_224": _published(128, 4, (2, 6, 14, 2)),
    "coatnet_3_224": _published(192, 6, (2, 6, 14, 2)),
    "coatnet_4_224": _published(192, 6, (2, 12, 28, 2)),
}
"""Those of timm whose settings are the paper's, and whose width doubles from stage to stage."""


def per_stage(expand: Domain, window: Domain) -> dict[str, Domain]:
    """Every kind in every stage, with the same expand ratios and windows in all of them."""
    return {
        **{f"kind_{stage}": Choice(KINDS) for stage in _STAGES},
        **{f"expand_{stage}": expand for stage in _STAGES},
        **{f"window_{stage}": window for stage in _STAGES},
    }


class CoAtNet:
    """stride, stem_width, num_stages; of each stage there is: kind_N, depth_N, expand_N where it has convolutions and
    window_N where it is `maxvit`; heads and head_width of the first stage (their product is its width, of whatever
    kind it is), mlp_ratio."""

    name = "coatnet"
    conditions: Mapping[str, Condition] = {
        **stages.CONDITIONS,
        **{key.replace("depth", "kind"): condition for key, condition in stages.CONDITIONS.items()},
        **{f"expand_{stage}": (f"kind_{stage}", ("conv", "maxvit")) for stage in _STAGES},
        **{f"window_{stage}": (f"kind_{stage}", ("maxvit",)) for stage in _STAGES},
    }
    named: Mapping[str, Mapping[str, Value]] = NAMED

    def limits(self, task: Task) -> dict[str, Domain]:
        shared = stages.limits()
        return {
            "stride": Choice(tuple(stride for stride in REDUCTIONS if -(-task.image_size // stride) >= 3)),
            "stem_width": IntRange(4, 256, 4),
            "num_stages": shared["num_stages"],
            **per_stage(IntRange(1, 8), IntRange(2, 64)),
            **{key: domain for key, domain in shared.items() if key != "num_stages"},
            "head_width": IntRange(8, 128, 8),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        def last_map(values: Mapping[str, Any]) -> str | None:
            side = -(-task.image_size // values["stride"])
            if maps(side, values["num_stages"])[-1] >= 2:
                return None
            return f"a first map of {side} x {side} leaves one position after {values['num_stages']} stages"

        return (
            Rule(("stride", "num_stages"), last_map),
            *(
                Rule(("num_stages", *(f"kind_{stage}" for stage in range(1, count + 1))), _attends(count))
                for count in range(2, stages.MAX_STAGES + 1)
            ),
            *(Rule(("stride", f"kind_{stage}"), _suits_the_map(task, stage)) for stage in _STAGES),
            *(Rule(("stride", f"window_{stage}"), _divides(task, stage)) for stage in _STAGES),
        )

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        stages = range(1, values["num_stages"] + 1)
        stem_stride, stage_stride = REDUCTIONS[values["stride"]]
        args = {
            "stem_stride": stem_stride,
            "stage_stride": stage_stride,
            "stem_width": values["stem_width"],
            "embed_dim": values["heads"] * values["head_width"],
            "kinds": [values[f"kind_{stage}"] for stage in stages],
            "depths": [values[f"depth_{stage}"] for stage in stages],
            "expand_ratios": [values.get(f"expand_{stage}", 0) for stage in stages],
            "window_sizes": [values.get(f"window_{stage}", 0) for stage in stages],
            "head_width": values["head_width"],
            "mlp_ratio": float(values["mlp_ratio"]),
            **task_args(task),
        }
        return ArchSpec(MODEL, args, task.image_size)


def _attends(count: int) -> Check:
    """A check of networks with so many stages."""

    def check(values: Mapping[str, Any]) -> str | None:
        kinds = [values[f"kind_{stage}"] for stage in range(1, count + 1)]
        if values["num_stages"] != count or any(kind != "conv" for kind in kinds):
            return None
        return f"none of {count} stages has attention: make one attention or maxvit"

    return check


def _side(task: Task, stage: int, stride: int) -> int:
    """Of the map in a stage, from 1 on."""
    return maps(-(-task.image_size // stride), stage)[-1]


def _suits_the_map(task: Task, stage: int) -> Check:
    def check(values: Mapping[str, Any]) -> str | None:
        kind, side = values[f"kind_{stage}"], _side(task, stage, values["stride"])
        if kind == "attention" and side > MAX_GRID:
            return (
                f"attention over {side} x {side} positions in stage {stage}; at most {MAX_GRID} x {MAX_GRID}"
            )
        if kind == "maxvit" and side < MIN_PARTED:
            return f"a map of {side} x {side} in stage {stage} is too small for maxvit: {MIN_PARTED} x {MIN_PARTED}"
        return None

    return check


def _divides(task: Task, stage: int) -> Check:
    def check(values: Mapping[str, Any]) -> str | None:
        side, window = _side(task, stage, values["stride"]), values[f"window_{stage}"]
        if side % window == 0:
            return None
        return f"window {window} does not divide the map of {side} x {side} in stage {stage}"

    return check
