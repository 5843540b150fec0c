"""A convolutional stem before a plain transformer (Xiao et al., Early Convolutions, arXiv:2106.14881).

`stem_depth` 3 x 3 convolutions reduce the image by `stride` in all: the first ones halve the map, the others keep
it. Hidden layers have `stem_width` channels, doubled with every halving but the first; the last convolution has the
transformer's width. Its entry point is registered with timm in `spaces.models`.

What `FIXED` names is searched only where a user names it: the normalisation of hidden layers (without one, they have
biases) and their activation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaces.costs import Analysis, Cost, convolution, norm, total
from spaces.dims import Choice, Condition, Domain, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task
from spaces.vit import encoder_args, encoder_cost, encoder_limits, patch_sizes, task_args

MODEL = "paretovit_conv_stem_vit"
NORMS = ("batch", "layer", "none")
ACTIVATIONS = ("relu", "gelu", "silu")
FIXED: Mapping[str, Value] = {"stem_norm": "batch", "stem_activation": "relu"}
"""Dimensions that are not searched unless they are named, and the value that each has then; a spec leaves it out."""


def stem(stride: int, depth: int, width: int, out_width: int) -> tuple[list[int], list[int]]:
    """Channels and strides of each layer of the stem."""
    halvings = stride.bit_length() - 1
    strides = [2] * halvings + [1] * (depth - halvings)
    hidden = [width * 2 ** max(0, min(layer + 1, halvings) - 1) for layer in range(depth - 1)]
    return [*hidden, out_width], strides


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of the entry point."""
    cost, side, inputs = Cost(), image_size, args["in_chans"]
    layers = list(zip(args["stem_channels"], args["stem_strides"], strict=True))
    for layer, (channels, stride) in enumerate(layers, start=1):
        side = (side + stride - 1) // stride
        is_normed = layer < len(layers) and args["stem_norm"] != "none"
        cost += convolution(side, 3, inputs, channels, bias=not is_normed) + norm(channels * is_normed)
        inputs = channels
    encoder, tokens = encoder_cost(args, side * side)
    return total(cost + encoder, tokens)


class Hybrid:
    """stride, stem_depth, stem_width, those of `FIXED`, then the transformer's depth, heads, head_width, mlp_ratio,
    pooling."""

    name = "hybrid"
    conditions: Mapping[str, Condition] = {}
    named: Mapping[str, Mapping[str, Value]] = {}

    def limits(self, task: Task) -> dict[str, Domain]:
        strides = tuple(size for size in patch_sizes(task).values if (int(size) & (int(size) - 1)) == 0)
        return {
            "stride": Choice(strides),
            "stem_depth": IntRange(2, 12),
            "stem_width": IntRange(4, 256, 4),
            "stem_norm": Choice(NORMS),
            "stem_activation": Choice(ACTIVATIONS),
            **encoder_limits(),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        def enough_layers(values: Mapping[str, Any]) -> str | None:
            stride, depth = values["stride"], values["stem_depth"]
            if 2**depth >= stride:
                return None
            return f"stem_depth {depth} halves at most {depth} times, which cannot reach stride {stride}"

        return (Rule(("stride", "stem_depth"), enough_layers),)

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        encoder = encoder_args(values)
        channels, strides = stem(
            values["stride"], values["stem_depth"], values["stem_width"], encoder["embed_dim"]
        )
        args = {"stem_channels": channels, "stem_strides": strides, **encoder, **task_args(task)}
        unusual = {key: values[key] for key, value in FIXED.items() if values.get(key, value) != value}
        return ArchSpec(MODEL, {**args, **unusual}, task.image_size)
