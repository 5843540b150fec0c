"""Digests of given images: stored searches know their images by them, so they may never change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workers.data.summary import summarise
from workers.settings import DataSettings


def ppm(path: Path, factor: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = (np.arange(6 * 4 * 3) * factor % 251).astype(np.uint8)
    path.write_bytes(b"P6 6 4 255\n" + pixels.tobytes())


def idx(path: Path, array: np.ndarray) -> None:
    shape = b"".join(side.to_bytes(4, "big") for side in array.shape)
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + shape + array.astype(np.uint8).tobytes())


def test_digits_have_the_digest_that_they_always_had() -> None:
    assert summarise(DataSettings("digits")).digest == "7600dbe425487a2d9c2acd8dbc3c94af"
    small = DataSettings("digits", image_size=16, train_limit=50)
    assert summarise(small).digest == "e66848f43d0dc8cc39c15c11544b4575"


@pytest.mark.parametrize(
    ("given", "digest"),
    [
        (("",), "8ad08a07d0d7e2652111d4af4f36d76b"),
        (("train", "val", "test"), "c5d6b139ceb8069a0bd9c3955babea67"),
    ],
)
def test_a_folder_has_the_digest_that_it_always_had(given, digest, tmp_path) -> None:
    for split in given:
        for name in ("cat", "dog"):
            for number in range(1, 11):
                factor = number + len(name + split) * 7 + ord(name[0])
                ppm(tmp_path / split / name / f"{number}.ppm", factor)
    assert summarise(DataSettings("folder", str(tmp_path), image_size=8)).digest == digest


def test_mnist_files_have_the_digest_that_they_always_had(tmp_path) -> None:
    for prefix, count in (("train", 60), ("t10k", 20)):
        idx(tmp_path / f"{prefix}-images-idx3-ubyte", np.arange(count * 36).reshape(count, 6, 6) * 7 % 251)
        idx(tmp_path / f"{prefix}-labels-idx1-ubyte", np.arange(count) % 4)
    assert summarise(DataSettings("idx", str(tmp_path))).digest == "abfd868e007856017dc40bfde90145f2"
