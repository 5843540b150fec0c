"""A training as its Execution says: precision, memory format, compilation, threads.

What is validated, stored and exported is fp32 and contiguous whatever the execution: the weights stay fp32, checkpoints
are written contiguous, and the averaged network is scored eagerly in fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from workers.execution import Execution

if TYPE_CHECKING:
    from workers.recipe import Training


@dataclass(frozen=True)
class Network:
    """A network as training calls it: images [b, channels, side, side], float32, to scores in float32."""

    call: Callable[[Tensor], Any]
    execution: Execution
    device_type: str

    def __call__(self, images: Tensor) -> Any:
        if self.execution.memory_format == "channels_last":
            images = images.contiguous(memory_format=torch.channels_last)
        if self.execution.precision == "fp32":
            return self.call(images)
        with torch.autocast(self.device_type, torch.bfloat16):
            scores = self.call(images)
        return tuple(each.float() for each in scores) if isinstance(scores, tuple) else scores.float()


def execute(training: Training, execution: Execution) -> None:
    """Has a freshly composed training go on like this, from its first step on."""
    if execution.memory_format == "channels_last":
        for network in (training.model, *([] if training.ema is None else [training.ema.module])):
            to_format: Any = network.to
            to_format(memory_format=torch.channels_last)
    device_type = training.parameters[0].device.type
    call = compiled(training.model) if execution.compiled else training.model
    training.network = Network(call, execution, device_type)


def compiled(model: nn.Module) -> Callable[[Tensor], Any]:
    """The network through torch.compile, which compiles at the first call with images of a new shape.

    What was compiled before in this process is forgotten: torch keeps few variants of one piece of code, and runs it
    eagerly past that, without a word.
    """
    from torch._inductor import config

    torch.compiler.reset()
    config.compile_threads = (
        1  # in this process: a pool would take the cores of other workers, and outlive jobs
    )
    return torch.compile(model, dynamic=False)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Torch with so many threads of the CPU until the block ends; 0 leaves it as it is."""
    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if count:
            torch.set_num_threads(before)


def can_bf16(device: torch.device) -> bool:
    """Whether bf16 is no mere emulation there: on GPUs of compute capability 8.0 and above, and on CPUs, where it may
    still be slower than fp32."""
    return device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
