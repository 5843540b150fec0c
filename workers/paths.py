"""A path as a user writes it. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path

_LONGEST_PATH = 4095
_LONGEST_NAME = 255
"""Bytes that Linux takes; macOS takes fewer of a whole path, and says so itself."""


def fault(path: str | Path) -> str | None:
    """Why no file can have this path, in words that follow it; None where one can."""
    text = str(path)
    if "\0" in text:
        return "holds a character that no file name can; choose another name"
    try:
        names = [os.fsencode(part) for part in text.split(os.sep)]
    except UnicodeEncodeError:
        return "holds a character that no file name can; choose another name"
    if max(map(len, names)) > _LONGEST_NAME or len(os.fsencode(text)) > _LONGEST_PATH:
        return f"is longer than a path can be ({len(text):,} characters); choose a shorter one"
    return None


def expanded(path: str | Path) -> Path:
    """With the home folder that a leading `~` or `~name` stands for.

    Raises ValueError, in words that follow the path, where there is no such home, and for what no file can be called.
    """
    if problem := fault(path):
        raise ValueError(problem)
    try:
        return Path(path).expanduser()
    except RuntimeError:
        name = Path(path).parts[0].removeprefix("~")
        who = f"a user {name!r}" if name else "yours"
        raise ValueError(
            f"the home folder of {who} is not known here; write the folder out, or ./ before the ~"
        ) from None
