"""How long an epoch of a training takes, from its first steps."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from statistics import median

import torch

from workers.data.batches import batches_per_epoch, resident
from workers.job import Decision, EpochReport, Job
from workers.knobs import knobs_of
from workers.recipe import is_fine_tuned
from workers.train import train

FEWEST_STEPS = 6
_WARM = 2
"""Steps that are not counted: the first ones allocate."""
_FORWARD = 1 / 3
"""Share of a training step that a forward pass takes."""


class _Enough(Exception):
    """Ends a training whose pace is known."""


def seconds_an_epoch(job: Job, device: torch.device, most_seconds: float) -> float:
    """With its validation. job: a train job; nothing of it is kept. most_seconds: of steps, where they are not too few.

    Raises what training raises.
    """
    data = resident(job.settings.data, device, lambda: 0.0).at(job.spec.image_size)
    times: list[float] = []
    whole: list[float] = []

    def between_steps() -> float:
        times.append(time.perf_counter())
        if len(times) > FEWEST_STEPS + _WARM and times[-1] - times[_WARM] > most_seconds:
            raise _Enough
        return 0.0

    def emit(report: EpochReport) -> Decision:
        whole.append(report.seconds)
        raise _Enough

    begun = replace(job, first_epoch=1, last_epoch=max(1, job.last_epoch))
    with suppress(_Enough):
        train(begun, device, emit, between_steps)
    if whole:
        return whole[0]
    recipe = job.settings.recipe
    images = len(data.splits["train"])
    knobs = knobs_of(recipe, is_fine_tuned(job.spec, recipe, job.inherit))
    steps = math.ceil(batches_per_epoch(images, recipe.batch_size) / knobs.accumulation)
    step = median(after - before for before, after in pairwise(times[_WARM:]))
    return step * steps * (1 + _FORWARD * len(data.splits["val"]) / images)
