"""What a search is compared with where nothing is said: a convolutional network about as large as its own candidates,
and two pretrained networks that many people would take instead."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from statistics import median

from spaces.analysis import analyse, knows
from spaces.resnet import resnet
from spaces.space import Space
from spaces.spec import ArchSpec, Task
from spaces.zoo import SMALLEST_USUAL, Zoo

MAX_WIDTH = 1024
SCALED = "resnet"
"""Name of the network of `default_baseline`."""

PRETRAINED = {"deit_tiny": "deit_tiny_patch16_224.fb_in1k", "resnet18": "resnet18.a1_in1k"}
"""Name of a baseline -> its pretrained weights."""

_STEP = 16


def default_baseline(task: Task, target_params: float) -> ArchSpec:
    """The ResNet whose number of parameters is nearest to `target_params`: one block a stage up to 32 px images and
    two above."""
    blocks = 1 if task.image_size <= 32 else 2
    specs = (resnet(task, width, blocks) for width in range(4, MAX_WIDTH + 1, 2))
    return min(specs, key=lambda spec: abs(analyse(spec).params - target_params))


def published_size(task: Task) -> int:
    """Side in pixels that networks see which were made for 224 px."""
    return max(SMALLEST_USUAL, -(-task.image_size // _STEP) * _STEP)


def pretrained_baselines(task: Task) -> dict[str, ArchSpec]:
    """The networks of `PRETRAINED`, at the image size of the task rounded up to a multiple of 16 px (a patch of
    DeiT-Ti), and at 64 px at least (4 x 4 patches, and 2 x 2 in the last stage of ResNet-18)."""
    size = published_size(task)
    return {name: Zoo().whole(task, weights, size) for name, weights in PRETRAINED.items()}


def median_params(
    space: Space, count: Callable[[ArchSpec], int], num_samples: int = 201, seed: int = 0
) -> int:
    """Median number of parameters of points drawn from a space.

    count: asked for the parameters of a network that has no closed form, once each.
    """
    counted = cache(count)
    rng = random.Random(seed)
    specs = (space.spec(space.sample(rng)) for _ in range(num_samples))
    return int(median(analyse(spec).params if knows(spec) else counted(spec) for spec in specs))
