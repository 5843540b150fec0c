"""Who drives a search: at most one process, named by host, boot, process id and start time.

On the owner's own host and boot its process is looked at; from another host only the counter's age can tell.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import psutil

TTL_SECONDS = 30.0
_START_TOLERANCE = 1.0


class Leased(Protocol):
    """The columns of a search that name its driver, as text or numbers; all None when nobody drives it."""

    @property
    def owner_host(self) -> Any: ...
    @property
    def owner_boot(self) -> Any: ...
    @property
    def owner_pid(self) -> Any: ...
    @property
    def owner_started(self) -> Any: ...
    @property
    def beat_time(self) -> Any: ...


@dataclass(frozen=True)
class Owner:
    """A process that may drive. started: its start time, UTC seconds."""

    host: str
    boot: str
    pid: int
    started: float


def this_process() -> Owner:
    """The owner that this process would be."""
    return Owner(socket.gethostname(), boot_id(), os.getpid(), psutil.Process().create_time())


def alive(search: Leased, now: float | None = None) -> bool:
    """Whether somebody drives the search at this moment, as far as can be told from here."""
    if search.owner_host is None or search.owner_pid is None:
        return False
    if search.owner_host == socket.gethostname() and search.owner_boot == boot_id():
        return _runs(search.owner_pid, search.owner_started)
    now = time.time() if now is None else now
    return search.beat_time is not None and now - search.beat_time < TTL_SECONDS


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Changes with every boot, so that a process id of before is never taken for one of today."""
    linux = Path("/proc/sys/kernel/random/boot_id")
    if linux.exists():
        return linux.read_text().strip()
    return f"{psutil.boot_time():.0f}"


def _runs(pid: int, started: float | None) -> bool:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return started is None or abs(process.create_time() - started) < _START_TOLERANCE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
