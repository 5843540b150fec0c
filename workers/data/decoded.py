"""Decoded pixels of a data set as one file of the cache, which every later worker, trial and search maps into memory.

The file is the pixels, a CRC of every block of rows, and a head that says the shape; the head is last, so that the
pixels are aligned. It is made under another name and then renamed: whoever sees it sees all of it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workers.data import cache
from workers.data.listing import Beat

DECODER = 1
"""To be raised when the same picture decodes to other pixels than before."""
_END = b"paretovit-pixels"
_BLOCK_BYTES = 1 << 24
_SPOT_CHECKS = 16
_WAIT_SECONDS = 0.2

Shape = tuple[int, int, int, int]
"""Images, rows, columns, channels."""
Decode = Callable[[np.ndarray, Beat], np.ndarray]


class NotKept(Exception):
    """Decoded images cannot be kept in a file: why, in words."""


class Damaged(Exception):
    """A file of the cache is not what was written. The message says in what."""


@dataclass(frozen=True)
class Mapped:
    """pixels: uint8, read-only, backed by the file: pages come in when they are touched and are shared by processes.
    mended: what was wrong with a file that had to be made again."""

    pixels: np.ndarray
    path: Path
    mended: str | None = None


def path_for(digest: str, image_size: int) -> Path | None:
    """Where the pixels of a data set are or would be. None: there is no cache."""
    root = cache.folder()
    return None if root is None else root / "decoded" / f"{digest}-{image_size}px-{DECODER}.pixels"


def mapped(path: Path, shape: Shape, indices: np.ndarray, decode: Decode, beat: Beat, whole: bool) -> Mapped:
    """The pixels of `indices`, decoded now where the file is not there or damaged.

    Processes that come at a time wait for the one that decodes. whole: check every block, not some of them.
    Raises NotKept where the file cannot be written, and what `decode` raises.
    """
    mended = None
    with suppress(FileNotFoundError):
        try:
            return Mapped(_open(path, shape, whole, beat), path)
        except Damaged as fault:
            mended = f"{path}: {fault}; made again"
            path.unlink(missing_ok=True)
    with _alone(path, beat):
        try:
            return Mapped(_open(path, shape, whole, beat), path, mended)  # another process was faster
        except FileNotFoundError:
            pass
        except Damaged as fault:
            mended = f"{path}: {fault}; made again"
        _write(path, shape, indices, decode, beat)
        return Mapped(_open(path, shape, whole, beat), path, mended)


def _write(path: Path, shape: Shape, indices: np.ndarray, decode: Decode, beat: Beat) -> None:
    """Raises NotKept where there is no room, or the disk does not take it."""
    row_bytes = int(np.prod(shape[1:]))
    rows = max(1, _BLOCK_BYTES // row_bytes)
    sums: list[int] = []
    try:
        if not cache.make_room(path.parents[1], row_bytes * len(indices)):
            raise NotKept(
                f"the cache may not take so much ({cache.LIMIT_VARIABLE}, and half of the room on its disk)"
            )
        with cache.replacing(path) as part, part.open("wb") as file:
            for start in range(0, len(indices), rows):
                block = np.ascontiguousarray(decode(indices[start : start + rows], beat))
                sums.append(zlib.crc32(block.data))
                file.write(block.data)
                beat()
            table = struct.pack(f"<{len(sums)}I", *sums)
            head = json.dumps({"shape": shape, "rows": rows, "sums": zlib.crc32(table)}).encode()
            file.write(table + head + struct.pack("<Q", len(head)) + _END)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.EFBIG):
            raise NotKept(f"the cache cannot be written ({error.strerror})") from None
        raise


def _open(path: Path, shape: Shape, whole: bool, beat: Beat) -> np.ndarray:
    """Raises Damaged, FileNotFoundError."""
    rows, sums = _head(path, shape)
    pixels = np.memmap(path, np.uint8, "r", shape=shape)
    blocks = range(len(sums))
    if not whole:
        blocks = np.unique(np.linspace(0, len(sums) - 1, _SPOT_CHECKS).astype(int)).tolist() if sums else []
    for number in blocks:
        if zlib.crc32(pixels[number * rows : (number + 1) * rows].data) != sums[number]:
            raise Damaged(f"images {number * rows} and following differ from what was written")
        beat()
    cache.touch(path)
    return pixels


def _head(path: Path, shape: Shape) -> tuple[int, tuple[int, ...]]:
    """Rows a block and the CRC of each block."""
    num_bytes = int(np.prod(shape))
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, min(num_bytes, size)))
        end = file.read()
    if end[-len(_END) :] != _END:
        raise Damaged("it was cut off or overwritten")
    (length,) = struct.unpack("<Q", end[-len(_END) - 8 : -len(_END)])
    try:
        head = json.loads(end[-len(_END) - 8 - length : -len(_END) - 8])
        rows, table_sum, found = head["rows"], head["sums"], tuple(head["shape"])
    except (ValueError, KeyError, TypeError):
        raise Damaged("its head cannot be read") from None
    table = end[: -len(_END) - 8 - length]
    if found != shape or len(table) != 4 * -(-shape[0] // rows) or zlib.crc32(table) != table_sum:
        raise Damaged("its size or head is not that of these images")
    return rows, struct.unpack(f"<{len(table) // 4}I", table)


@contextmanager
def _alone(path: Path, beat: Beat) -> Iterator[None]:
    """While the block runs, no other process is inside it for this path; on file systems without locks, some may be."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = path.with_suffix(".lock").open("wb")
    except OSError:
        yield
        return
    with file:
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    break
            beat()
            time.sleep(_WAIT_SECONDS)
        yield
