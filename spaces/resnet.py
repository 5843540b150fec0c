"""Convolutional networks to compare with.

`resnet`: a ResNet-D (He et al., arXiv:1812.01187) of basic blocks whose width and stem fit small images, built by
timm's `ResNet` through our entry point in `spaces.models`. The stem is three 3 x 3 convolutions; it keeps the size of
images up to 32 px, halves those up to 64 px, and reduces others by the usual 4. The widths of the four stages double.
`LAYERS`: timm's ResNets as first published (arXiv:1512.03385), whose costs are known here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


LAYERS: dict[str, tuple[int, ...]] = {
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
    "resnet50": (3, 4, 6, 3),
}
"""timm's name -> blocks of each stage: bottlenecks in `resnet50`, basic blocks in the others."""


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
    """Closed form of one of `LAYERS` for timm's arguments in_chans and num_classes; tokens are 0."""
    bottleneck = name == "resnet50"
    side = _half(image_size)
    stem = convolution(side, 7, args["in_chans"], 64) + norm(64)
    stages = _stages(_half(side), 64, (64, 128, 256, 512), LAYERS[name], bottleneck)
    head = linear(1, 2048 if bottleneck else 512, args["num_classes"])
    return total(stem + stages + head, tokens=0)


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
