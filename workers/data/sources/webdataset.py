"""Tar files in the layout of WebDataset: an image and its class under one name, `0001.jpg` and `0001.cls`.

Shards are read here with random access, where the library of that name streams them; nothing in them is run. A shard
belongs to the split whose name its own begins with (`val-0003.tar`), or its folder's (`val/0003.tar`). Classes are
numbers or names; `classes.txt` beside the shards names those that are numbered, a line each.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from workers.data import arrays, pictures
from workers.data.arrays import ALIASES
from workers.data.digests import Stamp, digests_of
from workers.data.listing import SPLITS, Beat, DataError, Listing
from workers.data.pictures import Pictures
from workers.data.sources.folder import SUFFIXES, stamp_of
from workers.settings import DataSettings

_CLASSES = ("cls", "txt", "json")
_NAMES = ("classes.txt", "classnames.txt")
_LONGEST_CLASS = 10_000


@dataclass(frozen=True)
class _Sample:
    """An image at `offset` of a shard, `size` bytes, and its class as it is stored."""

    shard: Path
    name: str
    offset: int
    size: int
    class_name: str


def read(settings: DataSettings, beat: Beat = lambda: None) -> Listing:
    """`content` covers the names of shards and images, and the images' bytes. Raises DataError."""
    root = Path(settings.path or "").expanduser()
    shards = _shards(root)
    samples: dict[str, list[_Sample]] = {}
    for split, paths in shards.items():
        for path in paths:
            beat()
            samples.setdefault(split, []).extend(_samples(path, *stamp_of(path)))
    names = _class_names(root)
    classes = {split: [_named(sample, names) for sample in found] for split, found in samples.items()}
    class_names = tuple(names) if names else arrays.in_order(next(iter(classes.values())))
    labels = [arrays.numbered(part, class_names, _where(root, split)) for split, part in classes.items()]
    everything = [sample for found in samples.values() for sample in found]
    listed = Pictures(
        shown=[f"{sample.shard}:{sample.name}" for sample in everything],
        names=[f"{sample.shard.relative_to(root).as_posix()}:{sample.name}" for sample in everything],
        read=lambda position: _bytes(everything[position]),
        labels=np.concatenate(labels),
        given=np.repeat(np.array(list(classes), "U5"), [len(part) for part in classes.values()]),
        class_names=class_names,
    )
    stamps: dict[Path, Stamp] = {path: stamp_of(path) for paths in shards.values() for path in paths}
    kept, digests, notes = pictures.usable(
        listed, lambda position: stamps[everything[position].shard], digests_of(root), settings, beat
    )
    return pictures.listing(kept, digests, settings, notes)


def _where(root: Path, split: str) -> str:
    return f"split {split} of {root}" if split else str(root)


def _shards(root: Path) -> dict[str, list[Path]]:
    """Split, or the empty name -> its shards in order."""
    if not root.is_dir():
        raise DataError(f"data.path: {root} is not a folder; give the folder of the tar files")
    found: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*.tar")):
        found.setdefault(_split_of(path, root), []).append(path)
    if not found:
        packed = next(iter(sorted(root.rglob("*.tar.*"))), None)
        remedy = f"unpack {packed.name} to a plain .tar" if packed else "check the path"
        raise DataError(f"data.path: {root} holds no .tar files; {remedy}")
    if "" in found and len(found) > 1:
        raise DataError(
            f"data.path: {found[''][0]} belongs to no split; let its name begin with train, val or test"
        )
    if "" not in found and "train" not in found:
        raise DataError(
            f"data.path: {root} holds {', '.join(found)} shards, but none whose name begins with train"
        )
    return {split: found[split] for split in ("", *SPLITS) if split in found}


def _split_of(path: Path, root: Path) -> str:
    words = [re.split(r"[^a-z]", part.lower())[0] for part in reversed(path.relative_to(root).parts)]
    return next((ALIASES[word] for word in words if word in ALIASES), "")


def _class_names(root: Path) -> list[str] | None:
    path = next((root / name for name in _NAMES if (root / name).is_file()), None)
    if path is None:
        return None
    names = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(set(names)) < max(2, len(names)):
        raise DataError(
            f"{path}: names fewer than two classes, or one twice; a line a class, in the order of their numbers"
        )
    return names


def _named(sample: _Sample, names: Sequence[str] | None) -> str:
    if names is None or not sample.class_name.isdecimal():
        return sample.class_name
    if int(sample.class_name) >= len(names):
        raise DataError(
            f"{sample.shard}:{sample.name}: class {sample.class_name} has no line among the {len(names)} of classes.txt"
        )
    return names[int(sample.class_name)]


@lru_cache(maxsize=10_000)
def _samples(path: Path, _size: int, _mtime_ns: int) -> tuple[_Sample, ...]:
    """Of one shard, remembered while its size and time stay the same."""
    images: dict[str, tuple[str, int, int]] = {}
    classes: dict[str, str] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                folder, slash, file = member.name.rpartition("/")
                stem, _, end = file.partition(".")
                if not member.isfile() or not stem:
                    continue
                key = folder + slash + stem
                if f".{end.lower()}" in SUFFIXES:
                    images[key] = (member.name, member.offset_data, member.size)
                elif end.lower() in _CLASSES and member.size <= _LONGEST_CLASS and key not in classes:
                    content = archive.extractfile(member)
                    classes[key] = _class_of(content.read() if content else b"", end.lower())
    except (tarfile.TarError, OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}); write or fetch it again") from error
    bare = sorted(key for key in images if not classes.get(key))
    if bare:
        raise DataError(
            f"{path}:{bare[0]}: has no class; each image needs a .cls, .txt or .json (label) of its name"
        )
    return tuple(_Sample(path, *place, classes[key]) for key, place in images.items())


def _class_of(content: bytes, end: str) -> str:
    text = content.decode("utf-8").strip()
    if end != "json":
        return text
    found = json.loads(text)
    value = (
        next((found[key] for key in ("label", "cls", "class") if key in found), "")
        if isinstance(found, dict)
        else found
    )
    return str(value)


def _bytes(sample: _Sample) -> bytes:
    with sample.shard.open("rb") as file:
        file.seek(sample.offset)
        return file.read(sample.size)
