"""A folder of images: one folder a class (torchvision's ImageFolder), also below train/, val/ and test/."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from workers.data import pictures
from workers.data.digests import Stamp, digests_of
from workers.data.listing import SPLITS, Beat, DataError, Listing
from workers.data.pictures import Pictures
from workers.settings import DataSettings

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


@dataclass
class _LeftOut:
    """What of a folder is no image of a class, by kind."""

    hidden: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    astray: list[Path] = field(default_factory=list)

    def notes(self, root: Path) -> list[str]:
        kinds = {"hidden": self.hidden, "not images": self.others, "images in no class folder": self.astray}
        return [
            f"files left out that are {kind}: {len(paths):,} (first: {min(paths).relative_to(root)})"
            for kind, paths in kinds.items()
            if paths
        ]


def read(settings: DataSettings, beat: Beat = lambda: None) -> Listing:
    """All images in the order split, class, path. Hidden files and files that are no images are left out.

    `content` covers the relative paths and the bytes of the files, so a copy elsewhere agrees. Every header
    is checked here; what only decoding can find is found by `decode`, or here where some bad ones may be left out.
    Raises DataError.
    """
    root = Path(settings.path or "").expanduser()
    if not root.is_dir():
        raise DataError(f"data.path: {root} is not a folder; give the folder that holds one folder a class")
    splits = _split_folders(root)
    class_names = _class_names(splits)
    left_out = _LeftOut()
    found: list[tuple[Path, str, int]] = []
    for split, folder in splits.items():
        for label, name in enumerate(class_names):
            found += [(path, split, label) for path in images(folder / name, left_out)]
            beat()
    _look_beside(root, splits, left_out)
    paths = [path for path, _, _ in found]
    listed = Pictures(
        shown=[str(path) for path in paths],
        names=[path.relative_to(root).as_posix() for path in paths],
        read=lambda position: paths[position].read_bytes(),
        labels=np.array([label for _, _, label in found], np.int64),
        given=np.array([split for _, split, _ in found], "U5"),
        class_names=class_names,
    )
    kept, digests, notes = pictures.usable(
        listed, lambda position: stamp_of(paths[position]), digests_of(root), settings, beat
    )
    _check_filled(splits, class_names, kept.given.tolist(), kept.labels.tolist())
    return pictures.listing(kept, digests, settings, (*left_out.notes(root), *notes))


def stamp_of(path: Path) -> Stamp:
    """Size and time of change. Raises OSError."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


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


def images(folder: Path, left_out: _LeftOut | None = None) -> list[Path]:
    """Image files below a folder, at any depth, in order."""
    return sorted(_walk(folder, frozenset(), left_out or _LeftOut()))


def _walk(folder: Path, above: frozenset[str], left_out: _LeftOut) -> Iterator[Path]:
    """Image files at any depth, links followed, without running in circles."""
    real = os.path.realpath(folder)
    if real in above or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name.startswith("."):
            left_out.hidden.append(path)
        elif path.suffix.lower() in SUFFIXES and path.is_file():
            yield path
        elif path.is_dir():
            yield from _walk(path, above | {real}, left_out)
        else:
            left_out.others.append(path)


def _look_beside(root: Path, splits: dict[str, Path], left_out: _LeftOut) -> None:
    """At what lies beside the class folders."""
    for folder in {root, *splits.values()}:
        for path in folder.iterdir():
            if path.name.startswith("."):
                left_out.hidden.append(path)
            elif not path.is_dir():
                is_image = path.suffix.lower() in SUFFIXES
                (left_out.astray if is_image else left_out.others).append(path)
