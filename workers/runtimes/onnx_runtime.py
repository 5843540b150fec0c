"""Converts a network to ONNX. Needs the extra `export`."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from workers.errors import ExportError

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
EXTRA = "pip install 'paretovit[export]'"
INPUT, OUTPUT = "images", "scores"
MAX_BATCH = 65_536


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
