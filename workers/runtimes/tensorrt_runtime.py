"""Runs a converted network in TensorRT (10 or 11) on a GPU. Needs the extra `tensorrt`.

Precisions are those of the ONNX file ("strongly typed"), so that nothing is computed otherwise than the label says.
https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/python-api-docs.html
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from workers.errors import CandidateError, DeviceError
from workers.runtimes.exporting import Exported
from workers.runtimes.onnx_runtime import INPUT, OUTPUT
from workers.runtimes.torch_runtime import Call


@dataclass(frozen=True)
class TensorRtModel:
    """An engine built for one batch size; images come and scores go in fp32."""

    exported: Exported
    device: torch.device
    batch_size: int
    plan: bytes = field(repr=False)
    takes_any_batch = False
    uses_torch_memory = False
    _engine: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        import tensorrt  # pyright: ignore[reportMissingImports]

        with torch.cuda.device(self.device):
            runtime = tensorrt.Runtime(tensorrt.Logger(tensorrt.Logger.ERROR))
            engine = runtime.deserialize_cuda_engine(self.plan)
        if engine is None:
            raise DeviceError("TensorRT cannot load the engine that it built")
        object.__setattr__(self, "_engine", engine)

    def call(self, images: Tensor) -> Call:
        """One synchronised run on `images` (float32 [n, channels, side, side] on the host), their copy included."""
        launch = self.launch(images)

        def run() -> Tensor:
            output = launch()
            self.synchronize()
            return output

        return run

    def launch(self, images: Tensor) -> Call:
        """The same without waiting for the device, on torch's stream. Returns the output, which the next run
        overwrites."""
        host = images.pin_memory()
        inputs = torch.empty_like(host, device=self.device)
        context = self._engine.create_execution_context()
        context.set_input_shape(INPUT, tuple(host.shape))
        output = torch.empty(tuple(context.get_tensor_shape(OUTPUT)), device=self.device)
        context.set_tensor_address(INPUT, inputs.data_ptr())
        context.set_tensor_address(OUTPUT, output.data_ptr())

        def run() -> Tensor:
            inputs.copy_(host, non_blocking=True)
            context.execute_async_v3(torch.cuda.current_stream(self.device).cuda_stream)
            return output

        return run

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.device)

    def num_bytes(self) -> int:
        """Of the weights, as they are stored."""
        return self.exported.weight_bytes

    def duplicate(self) -> TensorRtModel:
        """The same engine again, in memory of its own."""
        return TensorRtModel(self.exported, self.device, self.batch_size, self.plan)


def load(exported: Exported, device: torch.device, batch_size: int) -> TensorRtModel:
    """Builds an engine, which takes seconds to minutes. Raises CandidateError where TensorRT does not."""
    import tensorrt  # pyright: ignore[reportMissingImports]

    with torch.cuda.device(device):
        builder = tensorrt.Builder(tensorrt.Logger(tensorrt.Logger.ERROR))
        network = builder.create_network(1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        parser = tensorrt.OnnxParser(network, builder.logger)
        if not parser.parse(exported.content):
            reasons = "; ".join(str(parser.get_error(index)) for index in range(parser.num_errors))
            raise CandidateError(f"TensorRT cannot read this network: {reasons[:200]}")
        shape = (batch_size, *exported.image_shape)
        profile = builder.create_optimization_profile()
        profile.set_shape(INPUT, shape, shape, shape)
        config = builder.create_builder_config()
        config.clear_flag(tensorrt.BuilderFlag.TF32)
        config.add_optimization_profile(profile)
        plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise CandidateError("TensorRT built no engine for this network")
    return TensorRtModel(exported, device, batch_size, bytes(plan))
