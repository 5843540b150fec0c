"""How much memory training will take, predicted before anything is built.

Weights, gradients, AdamW's two moments and the averaged weights are 5 numbers a parameter. What is stored for every
image is proportional to the activations: the closed form counts what matrix products put out, and training also keeps
what norms, nonlinearities and windows make of it, and a gradient on the way back. The factors were fitted to peaks of
one training step on a CPU; tests/benchmarks/test_memory_prediction.py measures 50 networks and shows the error.
"""

from __future__ import annotations

import torch

from spaces import analysis
from spaces.analysis import Analysis
from spaces.spec import ArchSpec
from workers.device import Device
from workers.errors import CandidateError
from workers.memory_limit import MB, job_bytes

NUMBERS_A_PARAMETER = 5
STORED = 2.3
"""Numbers that training stores for an image, for each activation that attention or a batch does not share."""
STORED_SPARSE = 0.7
"""As many more where all blocks are sparse: partitioned copies of the map."""
BASE_BYTES = 10 * MB
MARGIN = 2.0
"""Overestimate that is allowed for: a candidate is refused where it would need so many times what there is."""


def training_bytes(known: Analysis, batch_size: int) -> int:
    """Memory that training in fp32 takes at its peak, beside the images and what the process has anyway."""
    stored = (STORED + STORED_SPARSE * known.sparse_share) * (known.activations - known.unstored)
    return round(4 * (NUMBERS_A_PARAMETER * known.params + batch_size * stored)) + BASE_BYTES


def check_fits(spec: ArchSpec, batch_size: int, device: Device) -> None:
    """Raises CandidateError where a network would need far more memory in training than a job may take on the device.

    What has no closed form is let through: the device then refuses it when it is built or trained.
    """
    if not analysis.knows(spec):
        return
    needed, room = training_bytes(analysis.analyse(spec), batch_size), device_bytes(device)
    if needed > MARGIN * room:
        raise CandidateError(
            f"too large: training with batches of {batch_size} would take about {needed / MB:,.0f} MB, and a job may "
            f"take {room / MB:,.0f} MB on {device.name}; a smaller training.batch_size takes less"
        )


def device_bytes(device: Device) -> int:
    """What a job may take there: all memory of a GPU, a job's share of the machine's on a CPU."""
    if device.is_cuda:
        return torch.cuda.get_device_properties(torch.device(device.torch)).total_memory
    return job_bytes()
