"""What this machine has to offer a search: checked before anything is written, in milliseconds."""

from __future__ import annotations

import os
from pathlib import Path

from search import folders
from search.config import SearchConfig
from search.errors import UsageError
from search.store import location
from workers import device, lock, memory_limit
from workers.data import cache
from workers.data.listing import DataError
from workers.errors import MachineError

_OF_THE_SYSTEM = (
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devpts",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
)
"""File systems whose folders take no files, though root may seem to write there."""


def check(config: SearchConfig) -> None:
    """Raises UsageError for a variable that says nothing, and for a folder that nothing can be kept in."""
    _check_environment()
    _check_artifacts(config)


def check_threads(config: SearchConfig) -> None:
    """Of a new search: one that has begun was measured with that many."""
    if config.cost.label is None and (problem := device.too_many_threads(config.cost.threads)):
        raise config.error("cost.threads", problem)


def _check_environment() -> None:
    """What variables say that workers read only once they need it."""
    try:
        memory_limit.named_bytes()
        cache.named_limit()
        cache.folder()
        lock.runtime_folder()
    except (MachineError, DataError) as error:
        raise UsageError(str(error)) from None


def _check_artifacts(config: SearchConfig) -> None:
    if config.artifacts is None:
        return
    if problem := unwritable(Path(config.artifacts)):
        raise config.error("artifacts", problem)
    folders.refuse_among_images(config, Path(config.artifacts) / config.name)


def unwritable(folder: Path) -> str | None:
    """Why a folder cannot be made or written in, or None. Looks at the nearest one that exists."""
    for place in (folder, *folder.parents):
        if place.is_dir():
            kind = location.file_system(place.resolve(), location.mounts())
            if kind in _OF_THE_SYSTEM:
                return (
                    f"{place} holds what the system tells of itself ({kind}), no files; choose another folder"
                )
            if os.access(place, os.W_OK | os.X_OK):
                return None
            return f"{place} is not writable; choose another folder or change its permissions"
        if place.exists() or place.is_symlink():
            return f"{place} is not a folder; choose another path"
    return f"{folder} is not below any folder"
