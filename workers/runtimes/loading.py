"""One network in the runtime and precision that are asked for, compared with eager torch before it is timed."""

from __future__ import annotations

import torch
from torch import Tensor

from spaces.spec import ArchSpec
from workers.device import Device
from workers.errors import DeviceError
from workers.measure import inputs
from workers.runtimes import agreement, offered, torch_runtime
from workers.runtimes.torch_runtime import Model, TorchModel
from workers.settings import RUNTIMES, CostSettings, Precision


def load(spec: ArchSpec, device: Device, cost: CostSettings, pixels: Tensor) -> Model:
    """`spec` with random weights, ready to be timed under `torch.inference_mode` in calls of `cost.batch_size`, which
    it is compiled for where the runtime compiles.

    pixels: float32 [n, channels, side, side] on the host, for the comparison and for int8's ranges.
    Raises DeviceError where it is not offered or this machine lacks something, ExportError where the network cannot be
    converted, and CandidateError where the runtime answers otherwise than eager torch.
    """
    precision = cost.used_precision
    kind = "cuda" if device.is_cuda else "cpu"
    why_not = offered.refusal(cost.runtime, precision, kind) or offered.missing(cost.runtime, precision, kind)
    if why_not is not None:
        raise DeviceError(why_not)
    is_converted = cost.runtime in ("onnxruntime", "openvino", "tensorrt")
    built = torch_runtime.build(spec, torch.device("cpu" if is_converted else device.torch))
    if cost.runtime == "torch" and precision == "fp32":
        return built
    model = _in_runtime(built, spec.digest, device, cost, precision, pixels)
    _compare(built, model, cost, precision, pixels)
    return model


def _in_runtime(
    built: TorchModel, name: str, device: Device, cost: CostSettings, precision: Precision, pixels: Tensor
) -> Model:
    match cost.runtime:
        case "torch":
            return built.to(precision)
        case "torch-compile":
            from workers.runtimes import compiled_runtime

            return compiled_runtime.load(built.to(precision))
        case "cuda-graph":
            from workers.runtimes import graph_runtime

            return graph_runtime.GraphModel(built.to(precision))
    from workers.runtimes import exporting

    images = inputs.batch(pixels, agreement.NUM_IMAGES[precision])
    exported = exporting.export(built, precision, images, name, symmetric=cost.runtime == "tensorrt")
    match cost.runtime:
        case "onnxruntime":
            from workers.runtimes import onnx_runtime

            return onnx_runtime.OnnxModel(exported, cost.threads, torch.device(device.torch))
        case "openvino":
            from workers.runtimes import openvino_runtime

            return openvino_runtime.OpenVinoModel(exported, precision, cost.threads)
        case "tensorrt":
            from workers.runtimes import tensorrt_runtime

            return tensorrt_runtime.load(exported, torch.device(device.torch), cost.batch_size)


def _compare(
    built: TorchModel, model: Model, cost: CostSettings, precision: Precision, pixels: Tensor
) -> None:
    """In calls of the batch that will be timed, since that may be a program of its own."""
    images = inputs.batch(pixels, max(agreement.NUM_IMAGES[precision], cost.batch_size))
    parts = [part for part in images.split(cost.batch_size) if len(part) == cost.batch_size]
    with torch.inference_mode():
        expected = torch.cat([built.call(part)().clone() for part in parts])
        scores = torch.cat([model.call(part)().clone() for part in parts])
    agreement.check(expected, scores, RUNTIMES[cost.runtime], precision)
