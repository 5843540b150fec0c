"""Runs a network compiled by torch.compile, for one batch size.

The whole network is one graph, or it is refused: what falls back to eager in part would not be what the label says.
Dynamo keeps compiled code by the forward function, which networks of one family share, and goes back to eager after
eight of them without a word: it is reset before each.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.runtimes.torch_runtime import Call, TorchModel


@dataclass(frozen=True)
class CompiledModel:
    """eager: holds the weights. compiled: `eager.network`, compiled with the first call. held: a copy of the weights,
    whose memory counts."""

    eager: TorchModel
    compiled: Callable[[Tensor], Tensor]
    held: TorchModel | None = None
    takes_any_batch = False
    uses_torch_memory = True

    @property
    def device(self) -> torch.device:
        return self.eager.device

    def call(self, images: Tensor) -> Call:
        """As `TorchModel.call`."""
        return TorchModel.call(self._as_torch(), images)

    def launch(self, images: Tensor) -> Call:
        """As `TorchModel.launch`."""
        return TorchModel.launch(self._as_torch(), images)

    def synchronize(self) -> None:
        self.eager.synchronize()

    def num_bytes(self) -> int:
        """Of parameters and buffers."""
        return self.eager.num_bytes()

    def duplicate(self) -> CompiledModel:
        """The same code with a second copy of the weights beside it: compiling again would count the compiler's
        memory."""
        held = TorchModel(copy.deepcopy(self.eager.network), self.device, self.eager.precision)
        return CompiledModel(self.eager, self.compiled, held)

    def _as_torch(self) -> TorchModel:
        return TorchModel(self.compiled, self.device, self.eager.precision)  # pyright: ignore[reportArgumentType]


def load(model: TorchModel) -> CompiledModel:
    """`model`, to be compiled with its first call, which takes seconds to minutes, and again for another batch size.

    The code is for as many CPU threads as torch has then. Compilers run in this process, one at a time.
    """
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # warns that there is no CUDA
    torch.compiler.reset()
    compiled = torch.compile(model.network, fullgraph=True, dynamic=False, options={"compile_threads": 1})
    return CompiledModel(model, compiled)
