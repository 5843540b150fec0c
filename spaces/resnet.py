"""A ResNet-D (He et al., arXiv:1812.01187) of basic blocks whose width and stem fit small images.

Built by timm's `ResNet` through our entry point in `spaces.models`. The stem is three 3 x 3 convolutions; it keeps
the size of images up to 32 px, halves those up to 64 px, and reduces others by the usual 4. The widths of the four
stages double.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of the entry point; tokens are 0."""
    channels, stem_stride = args["channels"], args["stem_stride"]
    side = image_size if stem_stride == 1 else _half(image_size)
    inputs, cost = args["in_chans"], Cost()
    for outputs in (channels[0] // 2, channels[0] // 2, channels[0]):
        cost += convolution(side, 3, inputs, outputs) + norm(outputs)
        inputs = outputs
    side = _half(side) if stem_stride == 4 else side
    for stage, (width, blocks) in enumerate(zip(channels, args["layers"], strict=True)):
        side = _half(side) if stage else side
        for block in range(blocks):
            cost += convolution(side, 3, inputs, width) + convolution(side, 3, width, width) + norm(width) * 2
            if block == 0 and (stage or inputs != width):
                cost += convolution(side, 1, inputs, width) + norm(width)
            inputs = width
    return total(cost + linear(1, inputs, args["num_classes"]), tokens=0)


def _half(side: int) -> int:
    return (side + 1) // 2
