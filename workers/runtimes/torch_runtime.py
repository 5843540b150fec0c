"""Runs a network in torch, eagerly: build, random weights, one synchronised call. What any runtime has to offer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from spaces import models
from spaces.spec import ArchSpec
from workers.errors import CandidateError
from workers.settings import Precision

Call = Callable[[], Tensor]
DTYPES: Mapping[Precision, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


class Model(Protocol):
    """A network in some runtime, ready to be timed."""

    @property
    def device(self) -> torch.device: ...

    def call(self, images: Tensor) -> Call:
        """One synchronised run on `images` (float32 [n, channels, side, side] on the host). Returns the output."""
        ...

    def synchronize(self) -> None: ...

    def num_bytes(self) -> int:
        """Of parameters and buffers."""
        ...

    @property
    def takes_any_batch(self) -> bool:
        """Whether a call of another batch size is the same program, and costs no compilation."""
        ...

    @property
    def uses_torch_memory(self) -> bool:
        """Whether torch's allocator knows all that it takes on a GPU."""
        ...

    def duplicate(self) -> Model:
        """The same network again, in memory of its own."""
        ...


@runtime_checkable
class OnStream(Protocol):
    """A model that works on torch's current stream, so that its calls can be timed by events there."""

    def launch(self, images: Tensor) -> Call:
        """As `Model.call`, without waiting for the device."""
        ...


@dataclass(frozen=True)
class TorchModel:
    """A network in evaluation mode on its device, ready to be timed under `torch.inference_mode`."""

    network: nn.Module
    device: torch.device
    precision: Precision = "fp32"
    takes_any_batch = True
    uses_torch_memory = True

    def call(self, images: Tensor) -> Call:
        """One synchronised forward on `images` (float32 [n, channels, side, side] on the host), its copy included.

        On a GPU the images lie in pinned memory, as a serving loop would keep them. Returns the output.
        """
        launch = self.launch(images)

        def forward() -> Tensor:
            output = launch()
            self.synchronize()
            return output

        return forward

    def launch(self, images: Tensor) -> Call:
        """The same without waiting for the device."""
        host = images.pin_memory() if self.device.type == "cuda" else images
        inputs = torch.empty_like(host, device=self.device, dtype=DTYPES[self.precision])

        def forward() -> Tensor:
            inputs.copy_(host, non_blocking=True)
            return self.network(inputs)

        return forward

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def num_bytes(self) -> int:
        """Of parameters and buffers."""
        tensors = [*self.network.parameters(), *self.network.buffers()]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def duplicate(self) -> TorchModel:
        """The same network again, in memory of its own."""
        return TorchModel(copy.deepcopy(self.network), self.device, self.precision)

    def to(self, precision: Precision) -> TorchModel:
        """The same network with its weights, and so all that it computes, in fp32, bf16 or fp16; in memory of its own.
        Images come in fp32, and are converted as they are copied to it."""
        network = copy.deepcopy(self.network).to(DTYPES[precision])
        return TorchModel(network, self.device, precision)


def build(spec: ArchSpec, device: torch.device, seed: int = 0) -> TorchModel:
    """The network of `spec` with random weights, none of them zero, drawn from `seed`; the global random state stays.

    timm starts some weights at zero (the last layer of a residual branch, biases, a head): those would let kernels and
    energy meters see an easier task than a trained network is. Raises what `spaces.models.build` raises.
    """
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(cuda):
        torch.manual_seed(seed)
        network = models.build(spec).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                zero = parameter == 0
                if parameter.is_floating_point() and bool(zero.any()):
                    parameter[zero] = torch.randn(int(zero.sum()), dtype=parameter.dtype) * 0.02
        return TorchModel(network.to(device), device)


def check_output(output: object, num_images: int) -> None:
    """Raises CandidateError unless `output` is one finite row of scores an image."""
    if not isinstance(output, Tensor) or output.ndim != 2 or output.shape[0] != num_images:
        shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise CandidateError(
            f"the network returned {shape} for {num_images} images, not [{num_images}, classes]"
        )
    if not bool(torch.isfinite(output).all()):
        raise CandidateError("the network returned NaN or infinite values")
