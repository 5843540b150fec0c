"""How much memory training will take, predicted before anything is built.

Weights, gradients, AdamW's two moments and the averaged weights are 5 numbers a parameter. What is stored for every
image is proportional to the activations: the closed form counts what matrix products put out, and training also keeps
what norms, nonlinearities and windows make of it, and a gradient on the way back. The factors were fitted to peaks of
one training step on a CPU; tests/benchmarks/test_memory_prediction.py measures 50 networks and shows the error.

A teacher is asked about every batch while the candidate's activations are held: its weights are 1 number a parameter,
and of its activations those of a few layers are there at a time.
"""

from __future__ import annotations

import torch

from spaces import analysis, models
from spaces.analysis import Analysis
from spaces.spec import ArchSpec
from workers.device import Device
from workers.errors import TooLargeError
from workers.memory_limit import MB, job_bytes

NUMBERS_A_PARAMETER = 5
STORED = 2.3
"""Numbers that training stores for an image, for each activation that attention or a batch does not share."""
STORED_SPARSE = 0.7
"""As many more where all blocks are sparse: partitioned copies of the map."""
HELD = 0.7
"""Of a teacher's activations, at a time: 0.64 to 0.97 in ResNets of 6 to 20 layers, 0.23 in a ViT of 8 blocks."""
BASE_BYTES = 10 * MB
MARGIN = 2.0
"""Overestimate that is allowed for: a candidate is refused where it would need so many times what there is."""


def training_bytes(known: Analysis, batch_size: int) -> int:
    """Memory that training in fp32 takes at its peak, beside the images and what the process has anyway."""
    stored = (STORED + STORED_SPARSE * known.sparse_share) * (known.activations - known.unstored)
    return round(4 * (NUMBERS_A_PARAMETER * known.params + batch_size * stored)) + BASE_BYTES


def teacher_bytes(spec: ArchSpec, batch_size: int) -> int:
    """Memory that asking a teacher about a batch takes; of one without a closed form, its weights alone."""
    if not analysis.knows(spec):
        return 4 * models.count(spec)
    known = analysis.analyse(spec)
    return round(4 * (known.params + batch_size * HELD * (known.activations - known.unstored)))


def check_fits(spec: ArchSpec, batch_size: int, device: Device, teacher: ArchSpec | None = None) -> None:
    """Raises TooLargeError where a network would need far more memory in training than a job may take on the device.

    teacher: of what learns from one. What has no closed form is let through: the device then refuses it when it is
    built or trained.
    """
    if not analysis.knows(spec):
        return
    needed, room = training_bytes(analysis.analyse(spec), batch_size), device_bytes(device)
    beside = 0 if teacher is None else teacher_bytes(teacher, batch_size)
    needed += beside
    if needed > MARGIN * room:
        told = f", {beside / MB:,.0f} MB of them for its teacher" if beside else ""
        raise TooLargeError(
            f"too large: training with batches of {batch_size} would take about {needed / MB:,.0f} MB{told}, and a job "
            f"may take {room / MB:,.0f} MB on {device.name}; a smaller training.batch_size takes less"
        )


def device_bytes(device: Device) -> int:
    """What a job may take there: all memory of a GPU, a job's share of the machine's on a CPU."""
    if device.is_cuda:
        return torch.cuda.get_device_properties(torch.device(device.torch)).total_memory
    return job_bytes()
