"""Runs a converted network in OpenVINO on the CPU. Needs the extra `openvino`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from workers.runtimes.exporting import Exported
from workers.runtimes.torch_runtime import Call
from workers.settings import Precision

_HINTS = {"fp32": "f32", "int8": "f32", "bf16": "bf16"}
"""What OpenVINO may compute in where a network says fp32; by itself it takes bf16 on CPUs that have it."""


@dataclass(frozen=True)
class OpenVinoModel:
    """Compiled for each batch size when it is first called for, with so many threads."""

    exported: Exported
    precision: Precision
    threads: int
    takes_any_batch = True
    uses_torch_memory = False
    _compiled: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def call(self, images: Tensor) -> Call:
        """One inference on `images` (float32 [n, channels, side, side]), read where they lie. Returns the output, which
        the next one overwrites."""
        import openvino

        request = self._for_batch(len(images)).create_infer_request()
        request.set_input_tensor(openvino.Tensor(images.numpy(), shared_memory=True))

        def infer() -> Tensor:
            request.infer()
            return torch.from_numpy(request.get_output_tensor().data)

        return infer

    def synchronize(self) -> None:
        """An inference returns when it is done."""

    def num_bytes(self) -> int:
        """Of the weights, as they are stored."""
        return self.exported.weight_bytes

    def duplicate(self) -> OpenVinoModel:
        """The same network again, to be compiled again."""
        return OpenVinoModel(self.exported, self.precision, self.threads)

    def _for_batch(self, size: int) -> Any:
        """A fixed shape, as a deployment that knows its batch has: it is faster than one left open."""
        if size not in self._compiled:
            import openvino

            core = openvino.Core()
            network = core.read_model(self.exported.content)
            network.reshape([size, *self.exported.image_shape])
            options = {
                "PERFORMANCE_HINT": "LATENCY",
                "NUM_STREAMS": "1",
                "INFERENCE_NUM_THREADS": str(self.threads),
                "INFERENCE_PRECISION_HINT": _HINTS[self.precision],
            }
            self._compiled[size] = core.compile_model(network, "CPU", options)
        return self._compiled[size]
