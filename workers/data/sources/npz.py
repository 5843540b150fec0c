"""One file of numpy arrays, `.npz`: `images` and `labels`, or a pair for every split.

The names are those in use: `x_train`/`y_train`, `train_images`/`train_labels`, `images_train`/`labels_train`, with
`val`, `valid`, `validation` or `test` for `train`; `class_names` names the classes that labels number. Nothing in the
file is unpickled.
"""

from __future__ import annotations

import zipfile
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np

from workers import memory_limit
from workers.data import arrays
from workers.data.arrays import ALIASES, Part
from workers.data.listing import Beat, DataError, Listing
from workers.settings import DataSettings

_IMAGES = ("images", "x")
_LABELS = ("labels", "y")
_ERRORS = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError)


def read(settings: DataSettings, beat: Beat = lambda: None) -> Listing:
    """`content` covers the pixels, the shape and the class names. Raises DataError."""
    path = Path(settings.path or "").expanduser()
    if not path.is_file():
        raise DataError(f"data.path: {path} is no file; source `npz` needs one file of numpy arrays")
    stat = path.stat()
    beat()
    found = _arrays(path, stat.st_size, stat.st_mtime_ns)
    beat()
    names = found.get("class_names")
    parts = {}
    for split, (images, labels) in _pairs(path, tuple(found)).items():
        parts[split] = _part(path, found, (images, labels), names)
    return arrays.listing(
        arrays.by_split(parts, str(path)), settings, None if names is None else _words(names)
    )


def _pairs(path: Path, keys: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Split, or the empty name -> its arrays of images and labels."""
    images, labels = _by_split(keys, _IMAGES), _by_split(keys, _LABELS)
    lacking = sorted(images.keys() ^ labels.keys())
    if lacking or not images:
        what = f"images and labels of {lacking[0] or 'all'!r} are not both there" if lacking else "no images"
        raise DataError(
            f"data.path: {path}: {what}; it holds {', '.join(keys) or 'nothing'}: name arrays images and labels, or "
            "x_train, y_train, x_test, y_test"
        )
    return {split: (images[split], labels[split]) for split in images}


def _by_split(keys: tuple[str, ...], kinds: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for key in keys:
        words = key.lower().split("_")
        if len(words) == 1 and words[0] in kinds:
            found[""] = key
        elif len(words) == 2 and words[0] in kinds and words[1] in ALIASES:
            found[ALIASES[words[1]]] = key
        elif len(words) == 2 and words[1] in kinds and words[0] in ALIASES:
            found[ALIASES[words[0]]] = key
    return found


def _part(path: Path, found: dict[str, np.ndarray], pair: tuple[str, str], names: np.ndarray | None) -> Part:
    images = arrays.checked(found[pair[0]], f"data.path: {path}: {pair[0]}")
    labels = found[pair[1]]
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    where = f"{path}: {pair[1]}"
    if labels.ndim != 1 or labels.dtype.kind not in "iuU":
        raise DataError(
            f"data.path: {where}: has shape {labels.shape} of {labels.dtype}; needs a class an image, as number or text"
        )
    if len(labels) != len(images):
        raise DataError(
            f"data.path: {where}: {len(labels)} labels for {len(images)} images; use arrays that match"
        )
    if names is not None and labels.dtype.kind in "iu":
        if labels.min() < 0 or labels.max() >= len(names):
            raise DataError(
                f"data.path: {where}: {labels.max()} is no position in class_names, of {len(names)} names"
            )
        labels = names[labels]
    return Part(images, _words(labels), where)


def _words(values: np.ndarray) -> list[str]:
    return [str(value) for value in values.tolist()]


@lru_cache(maxsize=1)
def _arrays(path: Path, _size: int, _mtime_ns: int) -> dict[str, np.ndarray]:
    """All arrays, remembered while the file's size and time stay the same."""
    try:
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except _ERRORS as error:
        text = " ".join(str(error).split())
        if isinstance(error, DataError):
            raise
        if "allow_pickle" in text:
            text = "it holds Python objects, which are not loaded; store arrays of numbers or text"
        raise DataError(
            f"data.path: {path}: cannot be read ({text or type(error).__name__}); write it again"
        ) from error


def _check_sizes(path: Path) -> None:
    """Before anything is unpacked: what the arrays announce is what is there, and fits into memory."""
    total, room = 0, memory_limit.job_bytes()
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as member:
                version = np.lib.format.read_magic(member)
                header = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, _, kind = header(member)
                announced = int(np.prod(shape, dtype=object)) * kind.itemsize
                there = entry.file_size - member.tell()
            if announced != there and not kind.hasobject:
                raise DataError(
                    f"data.path: {path}: {entry.filename} announces {announced:,} bytes, not {there:,}; write it anew"
                )
            total += there
    if total > room:
        raise DataError(
            f"data.path: {path}: its arrays take {total / 1e9:,.1f} GB, and a job may take {room / 1e9:,.1f} GB; store "
            "smaller images, or a folder of pictures"
        )
