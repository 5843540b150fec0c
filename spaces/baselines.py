"""The convolutional network that a search is compared with: a ResNet-D (He et al., arXiv:1812.01187) of basic blocks.

Built by timm's `ResNet` through our entry point in `spaces.models`, which lets the stem keep the size of tiny
images: stride 1 up to 32 px, 2 up to 64 px, and the usual 4 above.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from statistics import median
from typing import Any

from spaces.costs import Analysis, Cost, convolution, linear, norm, total
from spaces.space import Space
from spaces.spec import ArchSpec, Task

MODEL = "paretovit_resnet"
MAX_WIDTH = 1024


def default_baseline(task: Task, target_params: int) -> ArchSpec:
    """The ResNet whose number of parameters is nearest to `target_params`: four stages whose widths double, with one
    block each up to 32 px images and two above."""
    blocks = 1 if task.image_size <= 32 else 2
    widths = range(4, MAX_WIDTH + 1, 2)
    specs = (_spec(task, width, blocks) for width in widths)
    return min(specs, key=lambda spec: abs(analyse(spec.args, task.image_size).params - target_params))


def median_params(space: Space, num_samples: int = 201, seed: int = 0) -> int:
    """Median number of parameters of points drawn from a space."""
    from spaces.analysis import analyse as analyse_spec

    rng = random.Random(seed)
    return int(median(analyse_spec(space.spec(space.sample(rng))).params for _ in range(num_samples)))


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


def _spec(task: Task, width: int, blocks: int) -> ArchSpec:
    stem_stride = 1 if task.image_size <= 32 else 2 if task.image_size <= 64 else 4
    args = {
        "channels": [width * 2**stage for stage in range(4)],
        "layers": [blocks] * 4,
        "stem_stride": stem_stride,
        "in_chans": task.channels,
        "num_classes": task.num_classes,
    }
    return ArchSpec(MODEL, args, task.image_size)


def _half(side: int) -> int:
    return (side + 1) // 2
