"""Small real image files of the formats that the sources read."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    data = header + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.fixture
def idx_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes random MNIST-format files: 60 training and 20 test images of 6x6 pixels in four classes."""

    def make(name: str = "idx", end: str = ".gz", with_test: bool = True) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        generator = np.random.default_rng(0)
        for prefix, count in (("train", 60), ("t10k", 20))[: 1 + with_test]:
            images = generator.integers(0, 256, (count, 6, 6))
            write_idx(folder / f"{prefix}-images-idx3-ubyte{end}", images)
            write_idx(folder / f"{prefix}-labels-idx1-ubyte{end}", np.arange(count) % 4)
        return folder

    return make
