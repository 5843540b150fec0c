"""What else works on a machine, and what memory a call takes. Standard library alone: this file is carried to other
machines. Devices have the ids that `workers.device` gives them."""

from __future__ import annotations

import gc
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from workers.measure import malloc
from workers.measure.cpu import cpu_id

MAX_OTHERS_SHARE = 0.2
"""Of one core, by other work."""
MIN_OWN_SHARE = 0.95
TICKS_SECONDS = 0.03
_STATUS, _CLEAR_REFS, _STAT = Path("/proc/self/status"), Path("/proc/self/clear_refs"), Path("/proc/stat")
_WORKING = (0, 1, 2, 5, 6, 7)
"""Of proc(5)'s columns: user, nice, system, irq, softirq, steal."""


def device_id(threads: int) -> str:
    """Of this machine's CPU, as `workers.device` has it."""
    return f"{cpu_id()}-{threads}t"


class Watch:
    """What else works, from its making on; only Linux tells."""

    def __init__(self) -> None:
        self._wall, self._thread = time.perf_counter(), time.thread_time()
        self._machine, self._process = _machine_seconds(), time.process_time()

    def load(self) -> dict[str, float | None]:
        """others_share: cores that other processes took, on average, or None. own_share: of the wall clock, what this
        thread had a core for."""
        seconds = time.perf_counter() - self._wall
        own, now = time.process_time() - self._process, _machine_seconds()
        others = None
        if now is not None and self._machine is not None:
            others = max(0.0, now - self._machine - own) / seconds
        return {
            "seconds": seconds,
            "own_share": (time.thread_time() - self._thread) / seconds,
            "others_share": others,
        }


def is_contended(load: dict[str, float | None], threads: int) -> bool:
    """Whether other work disturbed what was timed."""
    seconds, own, others = load["seconds"] or 0.0, load["own_share"] or 0.0, load["others_share"]
    kept_off = threads == 1 and own < MIN_OWN_SHARE
    return kept_off or (others or 0.0) * seconds > MAX_OTHERS_SHARE * seconds + TICKS_SECONDS


def peak_memory_bytes(duplicate: Callable[[], Callable[[], object]]) -> int:
    """Resident growth while a second copy of a network is made and answers one call. duplicate: makes the copy and
    returns the call. Elsewhere than on Linux: growth of the process's largest size, which an earlier peak can hide."""
    gc.collect()
    with malloc.fresh_blocks():
        if not _has_high_water_mark():
            before = _largest_size()
            duplicate()()
            return _largest_size() - before
        before = _status("VmRSS")
        _CLEAR_REFS.write_text("5")
        duplicate()()
        return _status("VmHWM") - before


def _has_high_water_mark() -> bool:
    try:
        _CLEAR_REFS.write_text("5")
        return _status("VmHWM") > 0 and _status("VmRSS") > 0
    except (OSError, ValueError):
        return False


def _largest_size() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def _status(key: str) -> int:
    found = re.search(rf"^{key}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{_STATUS} has no {key}")
    return int(found[1]) * 1024


def _machine_seconds() -> float | None:
    try:
        fields = _STAT.read_text().split("\n", 1)[0].split()[1:]
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None
    return sum(int(fields[place]) for place in _WORKING if place < len(fields)) / ticks
