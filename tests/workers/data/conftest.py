"""Small real image files of the formats that the sources read."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


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


@pytest.fixture
def image_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes a folder of random PNG images: classes `cat` and `dog` below each of `splits`."""

    def make(splits: dict[str, int] | None = None, name: str = "images") -> Path:
        root = tmp_path / name
        generator = np.random.default_rng(0)
        for split, count in (splits or {"": 10}).items():
            for label in ("cat", "dog"):
                folder = root / split / label
                folder.mkdir(parents=True)
                for number in range(count):
                    pixels = generator.integers(0, 256, (12, 16, 3), np.uint8)
                    Image.fromarray(pixels).save(folder / f"{number}.png")
        return root

    return make
