"""A folder of images: one folder a class (torchvision's ImageFolder), also below train/, val/ and test/."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from workers.data import pixels
from workers.data.listing import SPLITS, Beat, DataError, Listing
from workers.settings import DataSettings

DEFAULT_IMAGE_SIZE = 64
SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".jfif",
    ".png",
    ".bmp",
    ".gif",
    ".webp",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".pnm",
)


def read(settings: DataSettings) -> Listing:
    """All images in the order split, class, path. Hidden files and files that are no images are left out.

    `content` covers the relative paths and the bytes of the files, so a copy elsewhere agrees. Every header
    is checked here; what only decoding can find is found by `decode`. Raises DataError.
    """
    root = Path(settings.path or "").expanduser()
    if not root.is_dir():
        raise DataError(f"data.path: {root} is not a folder; give the folder that holds one folder a class")
    splits = _split_folders(root)
    class_names = _class_names(splits)
    paths, labels, given = [], [], []
    for split, folder in splits.items():
        for label, name in enumerate(class_names):
            found = images(folder / name)
            paths += found
            labels += [label] * len(found)
            given += [split] * len(found)
    _check_filled(splits, class_names, given, labels)
    size = settings.image_size or DEFAULT_IMAGE_SIZE
    return Listing(
        class_names=class_names,
        labels=np.array(labels, np.int64),
        given=np.array(given, "U5"),
        image_size=size,
        channels=3,
        content=_content(root, paths),
        decode=lambda indices, beat: _decode(paths, indices, size, beat),
    )


def _split_folders(root: Path) -> dict[str, Path]:
    """Split name -> folder of class folders; the empty name where the source has no splits of its own."""
    folders = {path.name: path for path in _folders(root)}
    if not folders:
        raise DataError(f"data.path: {root} holds no folders; put the images into one folder a class")
    if "train" not in folders or not _folders(folders["train"]):
        return {"": root}
    unknown = sorted(folders.keys() - set(SPLITS))
    if unknown:
        raise DataError(
            f"data.path: {root / unknown[0]} stands beside train/; rename it to val or test, or move it away"
        )
    return {split: folders[split] for split in SPLITS if split in folders}


def _class_names(splits: dict[str, Path]) -> tuple[str, ...]:
    first, *others = list(splits.values())
    names = tuple(path.name for path in _folders(first))
    if len(names) < 2:
        raise DataError(
            f"data.path: {first} holds one class only ({''.join(names)}); at least two folders are needed"
        )
    for folder in others:
        unknown = sorted({path.name for path in _folders(folder)} - set(names))
        if unknown:
            raise DataError(
                f"data.path: class {unknown[0]!r} is in {folder} but not in {first}; rename or remove it"
            )
    return names


def _check_filled(
    splits: dict[str, Path], class_names: tuple[str, ...], given: list[str], labels: list[int]
) -> None:
    filled = set(zip(given, labels, strict=True))
    for split, folder in splits.items():
        if not any(name == split for name, _ in filled):
            raise DataError(f"data.path: {folder} holds no images ({' '.join(SUFFIXES)}); check the path")
    first = next(iter(splits))
    for label, name in enumerate(class_names):
        if (first, label) not in filled:
            raise DataError(
                f"data.path: class folder {splits[first] / name} holds no images; fill or remove it"
            )


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))


def images(folder: Path) -> list[Path]:
    """Image files below a folder, at any depth, in order."""
    return sorted(_walk(folder, frozenset()))


def _walk(folder: Path, above: frozenset[str]) -> Iterator[Path]:
    """Image files at any depth, links followed, without running in circles."""
    real = os.path.realpath(folder)
    if real in above or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.suffix.lower() in SUFFIXES and path.is_file():
            yield path
        elif path.is_dir():
            yield from _walk(path, above | {real})


def _content(root: Path, paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        stat = path.stat()
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode("utf-8", "surrogateescape"))
        digest.update(_checked_digest(path, stat.st_size, stat.st_mtime_ns))
    return digest.hexdigest()


@lru_cache(maxsize=200_000)
def _checked_digest(path: Path, _size: int, _mtime_ns: int) -> bytes:
    """SHA-256 of a file whose header is that of an image; remembered while size and time stay the same."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); mend or remove it") from error
    pixels.check(path, data)
    return hashlib.sha256(data).digest()


def _decode(paths: list[Path], indices: np.ndarray, size: int, beat: Beat) -> np.ndarray:
    decoded = np.empty((len(indices), size, size, 3), np.uint8)
    for position, index in enumerate(indices):
        if position % 32 == 0:
            beat()
        decoded[position] = pixels.decode(paths[index], size)
    return decoded
