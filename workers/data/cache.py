"""The folder of what is worked out of images once and used again. Everything in it may be deleted at any time."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs

from workers import paths
from workers.data.listing import DataError

VARIABLE = "PARETOVIT_CACHE"
LIMIT_VARIABLE = "PARETOVIT_CACHE_GB"
OFF = ("off", "none", "0")
GB = 1_000_000_000
LARGEST_SHARE = 0.5
"""Of what is free on the disk and what the cache takes already, that it may take at most."""
USUAL_LIMIT = 100 * GB
_ABANDONED_SECONDS = 86_400


def is_off() -> bool:
    """Whether the user wants none."""
    return os.environ.get(VARIABLE, "").strip().lower() in OFF


def folder() -> Path | None:
    """PARETOVIT_CACHE, else a folder of the user's; None where it is turned off or where the usual one cannot be used.

    Raises DataError where the folder that the variable names cannot be used.
    """
    named = os.environ.get(VARIABLE, "").strip()
    if is_off():
        return None
    try:
        path = paths.expanded(named) if named else platformdirs.user_cache_path("paretovit")
    except ValueError as error:
        raise DataError(f"{VARIABLE}={named[:60]}: {error}; `off` does without") from None
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_usable = os.access(path, os.R_OK | os.W_OK | os.X_OK)
    except OSError:
        is_usable = False
    if is_usable:
        return path
    if named:
        raise DataError(f"{VARIABLE}={named}: cannot be written in; name another folder, or `off`")
    return None


def limit_bytes(root: Path) -> int:
    """What the cache may take: PARETOVIT_CACHE_GB, else 100 GB, half of the room that there is at most.

    Raises DataError where the variable holds no positive number.
    """
    limit = named_limit() or USUAL_LIMIT
    room = shutil.disk_usage(root).free + sum(size for _, size, _ in _files(root))
    return min(limit, int(LARGEST_SHARE * room))


def named_limit() -> int | None:
    """Bytes that PARETOVIT_CACHE_GB says; None where it is not set. Raises DataError, as `limit_bytes` does."""
    named = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not named:
        return None
    try:
        limit = int(float(named) * GB)
    except (ValueError, OverflowError):
        limit = 0
    if limit <= 0:
        text = f"{LIMIT_VARIABLE}={named[:40]}: is no positive number of gigabytes; give one, such as 20"
        raise DataError(text)
    return limit


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file of another name to be written, which takes the place of `path` at once and whole when the block ends well.

    Several processes may do so at a time: the last one stays. Raises OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def touch(path: Path) -> None:
    """Marks a file as used now; what was not used longest goes first."""
    with suppress(OSError):
        os.utime(path)


def make_room(root: Path, num_bytes: int) -> bool:
    """Whether so many bytes more may be written; deletes what was not used longest, as far as needed, and what killed
    processes left. What others have open stays readable to them."""
    limit = limit_bytes(root)
    if num_bytes > limit:
        return False
    now = time.time()
    kept = []
    for used, size, path in sorted(_files(root)):
        if path.suffix == ".part" and now - used > _ABANDONED_SECONDS:
            path.unlink(missing_ok=True)
        else:
            kept.append((size, path))
    taken = sum(size for size, _ in kept)
    for size, path in kept:
        if taken + num_bytes <= limit:
            break
        if path.suffix != ".part":
            path.unlink(missing_ok=True)
            taken -= size
    return True


def _files(root: Path) -> list[tuple[float, int, Path]]:
    """(last used, size, path) of every file."""
    found = []
    for path in root.rglob("*"):
        with suppress(OSError):
            stat = path.lstat()
            if path.is_file():
                found.append((stat.st_mtime, stat.st_size, path))
    return found
