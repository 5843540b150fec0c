"""int8 by static quantisation: weights per channel, activations by their range on a few images (onnxruntime's tools).

Convolutions and matrix products are computed in int8, what is between them in fp32, as QuantizeLinear and
DequantizeLinear nodes say: onnxruntime, OpenVINO and TensorRT all read those.
https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from torch import Tensor

OPERATORS = ["Conv", "Gemm", "MatMul"]
BATCH = 4


def quantise(source: Path, target: Path, images: Tensor, name: str, *, symmetric: bool) -> None:
    """Writes the network of `source` in int8 to `target`.

    images: float32 [n, channels, side, side], which the ranges of activations are taken from. name: of the network's
    input. symmetric: activations signed and around zero, which TensorRT needs; else unsigned with a zero point, which
    CPUs multiply fastest.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Images(CalibrationDataReader):
        def __init__(self) -> None:
            self._left: Iterator[np.ndarray] = iter([part.numpy() for part in images.split(BATCH)])

        def get_next(self) -> dict[str, np.ndarray] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
            part = next(self._left, None)
            return None if part is None else {name: part}

    with _quietly():
        quantize_static(
            source,
            target,
            Images(),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=OPERATORS,
            per_channel=True,
            weight_type=QuantType.QInt8,
            activation_type=QuantType.QInt8 if symmetric else QuantType.QUInt8,
            extra_options={"ActivationSymmetric": symmetric},
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """It advises through the root logger, by the line."""
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
