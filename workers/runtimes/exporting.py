"""A network as ONNX in one of the precisions, in memory: what onnxruntime, OpenVINO and TensorRT load."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from workers.runtimes import onnx_runtime
from workers.runtimes.quantising import quantise
from workers.runtimes.torch_runtime import DTYPES, TorchModel
from workers.settings import Precision


@dataclass(frozen=True)
class Exported:
    """content: an ONNX file. weight_bytes: of its weights, as they are stored. image_shape: channels, side, side."""

    content: bytes
    weight_bytes: int
    image_shape: tuple[int, int, int]


class _Cast(nn.Module):
    """A network in another precision that takes fp32 and answers fp32."""

    def __init__(self, network: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.network = network
        self.dtype = dtype

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images.to(self.dtype)).float()


_last: dict[tuple[str, Precision], bytes] = {}
"""What was converted last: several runtimes load the same file, and torch takes seconds to write it."""


def export(
    model: TorchModel, precision: Precision, images: Tensor, name: str, *, symmetric: bool = False
) -> Exported:
    """model: in fp32 on the CPU. images: float32 [n, channels, side, side]; with int8 the ranges come from them, and
    `symmetric` says how (`quantising.quantise`). name: the same for the same network with the same weights.

    Raises ExportError where torch cannot convert it.
    """
    with tempfile.TemporaryDirectory(prefix="paretovit-onnx-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(_converted(model, "fp32" if precision == "int8" else precision, images, name, path))
        if precision == "int8":
            target = Path(folder) / "int8.onnx"
            quantise(path, target, images, onnx_runtime.INPUT, symmetric=symmetric)
            path = target
        content = path.read_bytes()
    channels, height, width = images.shape[1:]
    weight_bytes = model.num_bytes() if precision == "fp32" else _weight_bytes(content)
    return Exported(content, weight_bytes, (channels, height, width))


def _converted(model: TorchModel, precision: Precision, images: Tensor, name: str, path: Path) -> bytes:
    """path: a file to convert through."""
    if (name, precision) not in _last:
        network = model.network
        if precision != "fp32":
            network = _Cast(model.to(precision).network, DTYPES[precision])
        with torch.inference_mode(False), torch.no_grad():
            onnx_runtime.convert(network, images, path)
        _last.clear()
        _last[name, precision] = path.read_bytes()
    return _last[name, precision]


def _weight_bytes(content: bytes) -> int:
    import onnx

    graph = onnx.load_model_from_string(content).graph
    return sum(len(tensor.raw_data) for tensor in graph.initializer)
