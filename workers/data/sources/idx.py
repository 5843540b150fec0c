"""MNIST-format files, gzipped or plain: `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-...`.

The format is described at http://yann.lecun.com/exdb/mnist: a magic number (0, 0, 8 for bytes, number of
dimensions), the dimensions as big-endian 32-bit integers, then the bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from workers.data import pixels
from workers.data.listing import Beat, DataError, Listing
from workers.settings import DataSettings

PREFIXES = {"train": "train", "test": "t10k"}


@dataclass(frozen=True)
class _Pair:
    images: np.ndarray  # uint8 [n, h, w, 1]
    labels: np.ndarray  # uint8 [n]


def read(settings: DataSettings, beat: Beat = lambda: None) -> Listing:
    """The training files, and the test files as the given test split where they are there.

    `content` covers the decompressed pixels and labels, so gzipped and plain copies agree. Raises DataError.
    """
    root = Path(settings.path or "").expanduser()
    pairs = {}
    for split, prefix in PREFIXES.items():
        beat()
        pairs[split] = _pair(root, prefix)
    train, test = pairs["train"], pairs["test"]
    if train is None:
        raise DataError(
            f"data.path: {root} holds no train-images-idx3-ubyte(.gz); source `idx` needs MNIST-format files"
        )
    _check_labels(root, train, test)
    parts = {"train": train} if test is None else {"train": train, "test": test}
    return _listing(parts, settings)


def _listing(parts: dict[str, _Pair], settings: DataSettings) -> Listing:
    images = np.concatenate([pair.images for pair in parts.values()])
    labels = np.concatenate([pair.labels for pair in parts.values()])
    given = ["" if split == "train" and len(parts) == 1 else split for split in parts]
    size = settings.image_size or min(images.shape[1:3])
    digest = hashlib.sha256(images.tobytes())
    digest.update(labels.tobytes())
    return Listing(
        class_names=tuple(str(number) for number in range(int(labels.max()) + 1)),
        labels=labels.astype(np.int64),
        given=np.repeat(np.array(given, "U5"), [len(pair.labels) for pair in parts.values()]),
        image_size=size,
        channels=1,
        content=digest.hexdigest(),
        decode=lambda indices, beat: pixels.fit(images[indices], size, beat),
        is_costly=images.shape[1:3] != (size, size),
    )


def _check_labels(root: Path, train: _Pair, test: _Pair | None) -> None:
    if len(np.unique(train.labels)) < 2:
        raise DataError(
            f"data.path: the labels in {root} know fewer than two classes; there is nothing to tell apart"
        )
    if test is None:
        return
    if test.images.shape[1:] != train.images.shape[1:]:
        raise DataError(f"data.path: test images in {root} differ in size from the training images")
    unknown = np.setdiff1d(test.labels, train.labels)
    if unknown.size:
        raise DataError(
            f"data.path: test labels in {root} hold class {unknown[0]}, which the training labels lack"
        )


def _pair(root: Path, prefix: str) -> _Pair | None:
    image_path = _find(root, f"{prefix}-images", "idx3-ubyte")
    label_path = _find(root, f"{prefix}-labels", "idx1-ubyte")
    if image_path is None and label_path is None:
        return None
    if image_path is None or label_path is None:
        missing = "images-idx3-ubyte" if image_path is None else "labels-idx1-ubyte"
        raise DataError(f"data.path: {root} lacks {prefix}-{missing}(.gz) beside {image_path or label_path}")
    images = _array(image_path, 3)[..., None]
    labels = _array(label_path, 1)
    if len(images) != len(labels):
        raise DataError(f"{label_path}: {len(labels)} labels for {len(images)} images; use files that match")
    if min(images.shape) == 0:
        raise DataError(f"{image_path}: holds no images; fetch the file again")
    return _Pair(images, labels)


def _find(root: Path, stem: str, kind: str) -> Path | None:
    """The one file of that name at or below `root`; `train-images.idx3-ubyte` is a common spelling too."""
    if not root.is_dir():
        raise DataError(f"data.path: {root} is not a folder; give the folder of the MNIST-format files")
    names = [f"{stem}{joint}{kind}{end}" for joint in "-." for end in ("", ".gz")]
    found = [root / name for name in names if (root / name).is_file()] or [
        path for name in names for path in sorted(root.rglob(name)) if path.is_file()
    ]
    folders = {path.parent for path in found}
    if len(folders) > 1:
        raise DataError(
            f"data.path: several {stem} files below {root} ({', '.join(map(str, found))}); name one folder"
        )
    return found[0] if found else None


def _array(path: Path, num_dimensions: int) -> np.ndarray:
    stat = path.stat()
    return _read_array(path, num_dimensions, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)
def _read_array(path: Path, num_dimensions: int, _size: int, _mtime_ns: int) -> np.ndarray:
    """The bytes of one file, remembered while its size and time stay the same."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            magic = file.read(4)
            shape_bytes = file.read(4 * num_dimensions)
            if magic != bytes([0, 0, 8, num_dimensions]) or len(shape_bytes) < 4 * num_dimensions:
                raise DataError(
                    f"{path}: no MNIST-format file of {num_dimensions} dimensions; fetch it again"
                )
            shape = struct.unpack(f">{num_dimensions}I", shape_bytes)
            size = math.prod(shape)
            data = file.read(size + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error}); fetch the file again") from error
    if len(data) != size:
        there = "more" if len(data) > size else len(data)
        raise DataError(f"{path}: {size} bytes announced and {there} there; fetch it again")
    return np.frombuffer(data, np.uint8).reshape(shape)
