"""Scratch folders and processes of Ray: one folder a driver, so that the next can clear what a killed one left.

Names are short: Ray puts sockets some 70 characters below a folder, and a socket's path may have 103 on macOS.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
import time
from pathlib import Path

import psutil

from search import lease
from search.errors import UserError

_ROOT = Path("/tmp") / f"pv-{os.getuid()}"
_REMOVALS, _REMOVAL_SECONDS = 10, 0.1
_WAIT_SECONDS = 5.0
_clearing = threading.Event()


def make_scratch() -> Path:
    """A folder of this process: /tmp/pv-UID/PID-START."""
    _clearing.clear()
    folder = _mine()
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def is_clearing() -> bool:
    """Whether this process is ending what it has started: that it is gone is no surprise then."""
    return _clearing.is_set()


def clear_mine() -> None:
    """Ends what this process has started for its scratch folder, and deletes it."""
    _clearing.set()
    end_processes_of(_mine())
    _remove(_mine())


def clear() -> int:
    """Ends the processes and deletes the folders of drivers that are gone; returns how many folders."""
    gone = [folder for folder in _root().iterdir() if not _owner_runs(folder)]
    for folder in gone:
        end_processes_of(folder)
        _remove(folder)
    return len(gone)


def end_processes_of(folder: Path) -> None:
    """Ends the processes that Ray started for a scratch folder: those that name it, and their children."""
    mine = os.getpid()
    found = [process for process in _naming(folder) if process.pid != mine]
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [child for child in process.children(recursive=True) if child not in found]
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(found, timeout=_WAIT_SECONDS)


def _remove(folder: Path) -> None:
    """Deletes a folder, also where a thread of this process still writes into it as that begins."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_REMOVAL_SECONDS)


def _mine() -> Path:
    process = psutil.Process()
    return _root() / f"{process.pid}-{int(lease.start_time(process))}"


def _naming(folder: Path) -> list[psutil.Process]:
    named = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if any(str(folder) in part for part in process.cmdline()):
                named.append(process)
    return named


def _owner_runs(folder: Path) -> bool:
    pid, _, started = folder.name.partition("-")
    if not (pid.isdecimal() and started.isdecimal()):
        return False
    try:
        now = lease.start_time(psutil.Process(int(pid)))
        return abs(now - int(started)) <= 1 + lease.START_TOLERANCE
    except psutil.NoSuchProcess:
        return False


def _root() -> Path:
    with contextlib.suppress(FileExistsError):
        _ROOT.mkdir(mode=0o700)
    status = _ROOT.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise UserError(f"{_ROOT}: belongs to somebody else; remove it, or ask them to")
    return _ROOT
