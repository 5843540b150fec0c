"""A file that is being read, held so that no driver removes it meanwhile to make room."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Until the end of the block, or of this process. Raises OSError where the file cannot be opened."""
    with path.open("rb") as file:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_SH)
        yield


def is_held(path: Path) -> bool:
    """Whether somebody holds a file."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # not there, or on a file system without locks
        return False
    return False
