"""What is known of a folder's files from an earlier look, by path, size and time of change, so that they are read once.

One text file a folder of images in the cache: a line a file, and the CRC of all of them at the end. A file that is
damaged or of another version counts as missing.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workers.data import cache

_HEAD = "paretovit digests 1"
_RACY_NS = 2_000_000_000
"""A file changed so shortly before it was read may change again within the clock of its file system."""


@dataclass(frozen=True)
class Known:
    """What one look at a file found. digest: SHA-256 of its bytes. whole: all of it was decoded, not the header alone.
    fault: why it is no usable picture; "" where nothing is wrong."""

    digest: bytes
    whole: bool
    fault: str = ""


Stamp = tuple[int, int]
"""Size in bytes and time of change in ns."""


_kept: dict[tuple[str, Path | None], Digests] = {}
_MOST_KEPT = 4


class Digests:
    """Of the files below one folder, by relative path. Threads may share it."""

    def __init__(self, path: Path | None) -> None:
        """path: the file in the cache; None where there is no cache."""
        self._path = path
        self._found = _read(path)
        self._num_stored = len(self._found)
        self._is_new = False

    def get(self, name: str, stamp: Stamp, whole: bool) -> Known | None:
        """What is known of a file of this size and time. whole: only what was decoded, or is known to be faulty."""
        stored = self._found.get(name)
        if stored is None or stored[0] != stamp or (whole and not (stored[1].whole or stored[1].fault)):
            return None
        return stored[1]

    def put(self, name: str, stamp: Stamp, known: Known) -> None:
        """Remembers it, unless the file was changed a moment ago."""
        if time.time_ns() - stamp[1] > _RACY_NS:
            self._found[name] = (stamp, known)
            self._is_new = True

    def save(self, names: Collection[str]) -> None:
        """Writes what is known of these files, where anything is new. A disk that does not take it costs time alone."""
        kept = {name: self._found[name] for name in names if name in self._found}
        if self._path is None or not (self._is_new or len(kept) != self._num_stored):
            return
        body = "".join(_line(name, *entry) for name, entry in kept.items())
        data = body.encode("utf-8", "surrogateescape")
        with suppress(OSError), cache.replacing(self._path) as part:
            part.write_bytes(f"{_HEAD} {zlib.crc32(data)}\n".encode() + data)
        self._found, self._num_stored, self._is_new = kept, len(kept), False


def digests_of(root: Path) -> Digests:
    """What is known of the files below `root`, kept by this process too. Raises DataError as `cache.folder` does."""
    place = cache.folder()
    name = hashlib.sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    key = (name, place)
    if key not in _kept:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = Digests(None if place is None else place / "digests" / f"{name}.txt")
    return _kept[key]


def _line(name: str, stamp: Stamp, known: Known) -> str:
    fields = (str(stamp[0]), str(stamp[1]), known.digest.hex(), "w" if known.whole else "h")
    return "\t".join((*fields, _escaped(known.fault), _escaped(name))) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _unescaped(text: str) -> str:
    parts = (
        part.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r") for part in text.split("\\\\")
    )
    return "\\".join(parts)


def _read(path: Path | None) -> dict[str, tuple[Stamp, Known]]:
    if path is None:
        return {}
    try:
        head, _, data = path.read_bytes().partition(b"\n")
    except OSError:
        return {}
    if head != f"{_HEAD} {zlib.crc32(data)}".encode():
        return {}
    found = {}
    for line in data.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        size, changed, digest, kind, fault, name = line.split("\t")
        known = Known(bytes.fromhex(digest), kind == "w", _unescaped(fault))
        found[_unescaped(name)] = ((int(size), int(changed)), known)
    cache.touch(path)
    return found
