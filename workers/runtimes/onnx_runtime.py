"""Converts a network to ONNX, and runs it in onnxruntime. Needs the extra `export`."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from workers.errors import ExportError
from workers.runtimes.torch_runtime import Call

if TYPE_CHECKING:
    from workers.runtimes.exporting import Exported

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
EXTRA = "pip install 'paretovit[export]'"
INPUT, OUTPUT = "images", "scores"
MAX_BATCH = 65_536
PROVIDER = "CPUExecutionProvider"


@dataclass(frozen=True)
class OnnxModel:
    """A converted network in a session of its own, ready to be timed: on a CPU with so many threads, or on a GPU, where
    images are copied there and scores back in every run."""

    exported: Exported
    threads: int
    device: torch.device
    takes_any_batch = True
    uses_torch_memory = False
    _session: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3  # errors
        session = onnxruntime.InferenceSession(self.exported.content, options, providers=self._providers())
        object.__setattr__(self, "_session", session)

    def call(self, images: Tensor) -> Call:
        """One run on `images` (float32 [n, channels, side, side] on the host). Returns the output."""
        feed = {INPUT: images.numpy()}

        def run() -> Tensor:
            (scores,) = self._session.run([OUTPUT], feed)
            return torch.from_numpy(scores)

        return run

    def synchronize(self) -> None:
        """A run returns when it is done."""

    def num_bytes(self) -> int:
        """Of the weights, as they are stored."""
        return self.exported.weight_bytes

    def duplicate(self) -> OnnxModel:
        """The same network again, in a session of its own."""
        return OnnxModel(self.exported, self.threads, self.device)

    def _providers(self) -> list[Any]:
        if self.device.type == "cpu":
            return [PROVIDER]
        # Without TF32, as torch computes matrix products in fp32.
        return [("CUDAExecutionProvider", {"device_id": self.device.index or 0, "use_tf32": "0"}), PROVIDER]


def check_installed() -> None:
    """Raises ExportError, naming the extra, where a package is missing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ExportError(f"ONNX needs {', '.join(missing)}, which an extra brings: {EXTRA}")


def convert(network: nn.Module, images: Tensor, path: Path) -> None:
    """Writes `network` (in evaluation mode, on the CPU) as one file that takes any number of images.

    images: float32 [n, channels, side, side], as the network takes them. Input `images`, output `scores`.
    Raises ExportError where torch cannot convert it.
    """
    check_installed()
    batch = torch.export.Dim("batch", min=1, max=MAX_BATCH)
    example = images[torch.arange(2) % len(images)]  # with a batch of 1, torch takes it for constant
    try:
        # torch's fast kernels lay their outcome out in ways that the exporter gets wrong for some networks.
        with _quietly(), sdpa_kernel(SDPBackend.MATH):
            torch.onnx.export(
                network,
                (example,),
                path,
                dynamo=True,
                verbose=False,
                external_data=False,
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes=({0: batch},),
            )
    except (torch.onnx.OnnxExporterError, RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ExportError(f"torch cannot convert this network to ONNX: {reason}") from error


@contextmanager
def _quietly() -> Iterator[None]:
    """The exporters warn and log about their own insides, which no user can mend."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
