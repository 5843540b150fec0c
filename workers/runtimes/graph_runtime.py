"""Runs a network as a CUDA graph: its kernels are recorded once and launched together, without Python between them.

https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs has the rules for recording.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.runtimes.torch_runtime import DTYPES, Call, TorchModel

WARM_UP_CALLS = 3


@dataclass(frozen=True)
class GraphModel:
    """A network on a GPU; each batch size is recorded when it is first called for."""

    eager: TorchModel
    takes_any_batch = True
    uses_torch_memory = True

    @property
    def device(self) -> torch.device:
        return self.eager.device

    def call(self, images: Tensor) -> Call:
        """One replay on `images` (float32 [n, channels, side, side] on the host), their copy into the graph's input and
        the wait for the device included. Returns the output, which the next replay overwrites."""
        launch = self.launch(images)

        def replay() -> Tensor:
            output = launch()
            self.synchronize()
            return output

        return replay

    def launch(self, images: Tensor) -> Call:
        """The same without waiting for the device."""
        host = images.pin_memory()
        inputs = torch.empty_like(host, device=self.device, dtype=DTYPES[self.eager.precision])
        inputs.copy_(host)
        graph, output = self._record(inputs)

        def replay() -> Tensor:
            inputs.copy_(host, non_blocking=True)
            graph.replay()
            return output

        return replay

    def synchronize(self) -> None:
        self.eager.synchronize()

    def num_bytes(self) -> int:
        """Of parameters and buffers."""
        return self.eager.num_bytes()

    def duplicate(self) -> GraphModel:
        """The same network again, in memory of its own."""
        return GraphModel(TorchModel(copy.deepcopy(self.eager.network), self.device, self.eager.precision))

    def _record(self, inputs: Tensor) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """Kernels are chosen and libraries loaded on a stream beside before the recording, as it allows neither."""
        beside = torch.cuda.Stream(self.device)
        beside.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(beside):
            for _ in range(WARM_UP_CALLS):
                self.eager.network(inputs)
        torch.cuda.current_stream(self.device).wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self.device), torch.cuda.graph(graph):
            output = self.eager.network(inputs)
        return graph, output
