"""Convolutional networks to compare with.

`resnet`: a ResNet-D (He et al., arXiv:1812.01187) of basic blocks whose width and stem fit small images, built by
timm's `ResNet` through our entry point in `spaces.models`. The stem is three 3 x 3 convolutions; it keeps the size of
images up to 32 px, halves those up to 64 px, and reduces others by the usual 4. The widths of the four stages double.
`PUBLISHED`: ResNets of timm's own (arXiv:1512.03385), whose costs are known here too, whole and cut after a stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spaces.costs import Analysis, Cost, convolution, linear, norm, total
from spaces.spec import ArchSpec, Task

MODEL = "paretovit_resnet"


def resnet(task: Task, width: int, blocks: int) -> ArchSpec:
    """The network whose first stage has `width` channels (even), with so many blocks in every stage."""
    stem_stride = 1 if task.image_size <= 32 else 2 if task.image_size <= 64 else 4
    args = {
        "channels": [width * 2**stage for stage in range(4)],
        "layers": [blocks] * 4,
        "stem_stride": stem_stride,
        "in_chans": task.channels,
        "num_classes": task.num_classes,
    }
    return ArchSpec(MODEL, args, task.image_size)


@dataclass(frozen=True)
class Published:
    """layers: blocks of each stage. bottleneck: whether a block is a 1 x 1, a 3 x 3 and a 1 x 1 convolution, the last
    of four times the width; else two of 3 x 3. tiered: whether the stem is three 3 x 3 convolutions; else one of 7 x 7.
    """

    layers: tuple[int, ...]
    bottleneck: bool = False
    tiered: bool = False


PUBLISHED: dict[str, Published] = {
    "resnet10t": Published((1, 1, 1, 1), tiered=True),
    "resnet14t": Published((1, 1, 1, 1), bottleneck=True, tiered=True),
    "resnet18": Published((2, 2, 2, 2)),
    "resnet34": Published((3, 4, 6, 3)),
    "resnet50": Published((3, 4, 6, 3), bottleneck=True),
}
"""By timm's name."""

_WIDTHS = (64, 128, 256, 512)


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of the entry point; tokens are 0."""
    channels, stem_stride = args["channels"], args["stem_stride"]
    side = image_size if stem_stride == 1 else _half(image_size)
    inputs, cost = args["in_chans"], Cost()
    for outputs in (channels[0] // 2, channels[0] // 2, channels[0]):
        cost += convolution(side, 3, inputs, outputs) + norm(outputs)
        inputs = outputs
    side = _half(side) if stem_stride == 4 else side
    cost += _stages(side, inputs, channels, args["layers"], bottleneck=False)
    return total(cost + linear(1, channels[-1], args["num_classes"]), tokens=0)


def analyse_published(name: str, args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form of one of `PUBLISHED` for timm's arguments in_chans and num_classes; tokens are 0."""
    own = PUBLISHED[name]
    _, channels, cost = cut(own, len(own.layers), image_size, args["in_chans"])
    return total(cost + linear(1, channels, args["num_classes"]), tokens=0)


def cut(own: Published, stages: int, image_size: int, inputs: int) -> tuple[int, int, Cost]:
    """Side and channels of the map after so many stages, and the cost of everything before it. After none of them, the
    map is that of the stem, which is pooled before the first stage."""
    side = _half(image_size)
    stem = ((3, 24), (3, 32), (3, 64)) if own.tiered else ((7, 64),)
    cost = Cost()
    for kernel, outputs in stem:
        cost += convolution(side, kernel, inputs, outputs) + norm(outputs)
        inputs = outputs
    if stages == 0:
        return side, inputs, cost
    side, widths = _half(side), _WIDTHS[:stages]
    cost += _stages(side, inputs, widths, own.layers[:stages], own.bottleneck)
    for _ in range(1, stages):
        side = _half(side)
    return side, widths[-1] * (4 if own.bottleneck else 1), cost


def _stages(side: int, inputs: int, channels: Sequence[int], layers: Sequence[int], bottleneck: bool) -> Cost:
    """side: of the first stage's map; every other stage halves it in its first block."""
    cost = Cost()
    for stage, (width, blocks) in enumerate(zip(channels, layers, strict=True)):
        before, side = side, _half(side) if stage else side
        outputs = width * 4 if bottleneck else width
        for block in range(blocks):
            if bottleneck:
                cost += _bottleneck(side if block else before, side, inputs, width)
            else:
                cost += _basic(side, inputs, width)
            if block == 0 and (stage or inputs != outputs):
                cost += convolution(side, 1, inputs, outputs) + norm(outputs)
            inputs = outputs
    return cost


def _basic(side: int, inputs: int, width: int) -> Cost:
    return convolution(side, 3, inputs, width) + convolution(side, 3, width, width) + norm(width) * 2


def _bottleneck(before: int, side: int, inputs: int, width: int) -> Cost:
    """before: side of the map that comes in."""
    narrow = convolution(before, 1, inputs, width) + convolution(side, 3, width, width) + norm(width) * 2
    return narrow + convolution(side, 1, width, width * 4) + norm(width * 4)


def _half(side: int) -> int:
    return (side + 1) // 2
