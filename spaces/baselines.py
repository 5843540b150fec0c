"""The convolutional network that a search is compared with, about as large as the search's own candidates."""

from __future__ import annotations

import random
from statistics import median

from spaces.analysis import analyse
from spaces.resnet import resnet
from spaces.space import Space
from spaces.spec import ArchSpec, Task

MAX_WIDTH = 1024


def default_baseline(task: Task, target_params: float) -> ArchSpec:
    """The ResNet whose number of parameters is nearest to `target_params`: one block a stage up to 32 px images and
    two above."""
    blocks = 1 if task.image_size <= 32 else 2
    specs = (resnet(task, width, blocks) for width in range(4, MAX_WIDTH + 1, 2))
    return min(specs, key=lambda spec: abs(analyse(spec).params - target_params))


def median_params(space: Space, num_samples: int = 201, seed: int = 0) -> int:
    """Median number of parameters of points drawn from a space."""
    rng = random.Random(seed)
    return int(median(analyse(space.spec(space.sample(rng))).params for _ in range(num_samples)))
