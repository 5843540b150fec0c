"""A ceiling on the memory that one job may take, so that a hungry candidate fails instead of the machine.

On Linux `RLIMIT_DATA` counts every private writable mapping, so that malloc refuses what goes over it, and torch, numpy
and Python raise. Accelerator jobs are left alone: drivers map far more than they use, and torch's own allocator
refuses on the device. macOS does not enforce such limits; there a candidate is bounded by the machine alone.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from workers.errors import MachineError

VARIABLE = "PARETOVIT_JOB_MEMORY_MB"
SHARE_OF_FREE_MEMORY = 0.8
MB = 1_000_000
_MESSAGES = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "bad_alloc",
    "not enough memory",
)


@contextmanager
def limited() -> Iterator[int | None]:
    """Lets this process take so many bytes more than it has, until the block ends; yields them, None without a limit.

    PARETOVIT_JOB_MEMORY_MB says how many (the engine divides the machine among its workers), else 0.8 of what is
    free now. Whatever goes over it raises an error that `is_out_of_memory` knows. What the process freed earlier and
    its allocator kept is not counted again: it may be used up first.
    """
    if sys.platform != "linux":
        yield None
        return
    allowance = job_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    ceiling = _data_bytes() + allowance
    if soft != resource.RLIM_INFINITY:
        ceiling = min(ceiling, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))
    try:
        yield allowance
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def job_bytes() -> int:
    """Bytes that one job may take now. Raises MachineError where the variable holds no number of them."""
    named = named_bytes()
    if named is not None:
        return named
    return int(free_bytes() * SHARE_OF_FREE_MEMORY)


def named_bytes() -> int | None:
    """What the variable says; None where it is not set. Raises MachineError for anything else than a number."""
    named = os.environ.get(VARIABLE, "").strip()
    if not named:
        return None
    if not named.isdecimal() or int(named) == 0:
        raise MachineError(
            f"{VARIABLE}={named[:40]}: is no whole number of megabytes above 0; give one, such as 4000"
        )
    return int(named) * MB


def free_bytes() -> int:
    """What can be allocated without swapping: the system's estimate, or what the control group still allows."""
    return min([psutil.virtual_memory().available, *_group_bytes()])


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory, the device's or the host's, did not suffice."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return isinstance(error, RuntimeError) and any(message in str(error).lower() for message in _MESSAGES)


def _group_bytes() -> list[int]:
    """What the control group (v2, v1) leaves, in containers; empty where it sets no limit."""
    root = Path("/sys/fs/cgroup")
    pairs = [
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    ]
    left = []
    for limit, usage in pairs:
        try:
            left.append(max(0, int(limit.read_text()) - int(usage.read_text())))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return left


def _data_bytes() -> int:
    """What RLIMIT_DATA counts: this process's private writable memory."""
    found = re.search(r"^VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
