"""Who drives a search: at most one process, named by host, boot, process id and start time.

On the owner's own host and boot its process is looked at; from another host only the counter's age can tell.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import psutil

TTL_SECONDS = 30.0
START_TOLERANCE = 1.0  # seconds


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
    """A process that may drive. started: its start time, as `start_time` tells it."""

    host: str
    boot: str
    pid: int
    started: float


def this_process() -> Owner:
    """The owner that this process would be."""
    return Owner(socket.gethostname(), boot_id(), os.getpid(), start_time(psutil.Process()))


def alive(search: Leased, now: float | None = None) -> bool:
    """Whether somebody drives the search at this moment, as far as one look can tell.

    Of another host only the age of its last beat is known; `watch` waits to be sure.
    """
    if search.owner_host is None or search.owner_pid is None:
        return False
    if is_here(search):
        return _runs(search.owner_pid, search.owner_started)
    now = time.time() if now is None else now
    return search.beat_time is not None and now - search.beat_time < TTL_SECONDS


def is_here(search: Leased) -> bool:
    """Whether the owner ran on this host since its last boot, so that its process can be looked at."""
    return search.owner_host == socket.gethostname() and search.owner_boot == boot_id()


def start_time(process: psutil.Process) -> float:
    """When a process started: seconds since boot on Linux, where psutil's own figure moves with the clock, else UTC."""
    created = process.create_time()
    return round(created - psutil.boot_time(), 2) if sys.platform == "linux" else created


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
        return started is None or abs(start_time(process) - started) < START_TOLERANCE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
