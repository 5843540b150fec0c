"""Leaving at once, from a signal handler or a thread, while the rest of the program stands where it stands."""

from __future__ import annotations

import contextlib
import os
from typing import NoReturn

_SHOW_CURSOR = "\x1b[?25h"
"""Undoes what a spinner does to a terminal."""


def write_plainly(text: str) -> None:
    """A line to stderr, past buffers that may be half written."""
    with contextlib.suppress(OSError):
        os.write(2, f"paretovit: {text}\n".encode())


def leave(code: int, text: str) -> NoReturn:
    """Ends the process with a line to stderr."""
    if os.isatty(2):
        with contextlib.suppress(OSError):
            os.write(2, _SHOW_CURSOR.encode())
    write_plainly(text)
    os._exit(code)
