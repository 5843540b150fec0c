"""Emptying the last-level cache, so that a call finds neither images nor weights in it: `cost.cache: cold`.

Between two calls, outside the clock, other images are written where the call reads its own, and then a buffer of twice
the cache is read and written through. What is left in the cache are lines of that buffer: weights, images and all that
the call before left behind come from memory, as in a service that does other work between two requests.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

MB = 1_000_000
ASSUMED_BYTES = 64 * MB
"""Where the system does not tell: no less than most processors have."""
SIZES = 2
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def last_level_bytes(device: torch.device) -> int:
    """Size of the cache before the device's memory: L2 of a GPU, the highest level of a CPU."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size) or ASSUMED_BYTES
    return _of_cpu(_CACHES)


def emptying(device: torch.device, images: Tensor, others: Tensor) -> Callable[[], None]:
    """To be called before each call that reads `images` ([n, channels, side, side] on the host), which get the next
    of `others` ([m, channels, side, side]) each time."""
    buffer = torch.zeros(SIZES * last_level_bytes(device) // 8, dtype=torch.int64, device=device)
    turn = 0

    def empty() -> None:
        nonlocal turn
        turn = (turn + len(images)) % len(others)
        places = torch.arange(turn, turn + len(images)) % len(others)
        images.copy_(others[places])
        buffer.add_(1)  # reads and writes: a fill alone may go past the cache
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return empty


@cache
def _of_cpu(folder: Path) -> int:
    if sys.platform == "darwin":
        return _of_mac()
    sizes: dict[int, int] = {}
    for index in folder.glob("index*"):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        found = re.fullmatch(r"(\d+)([KMG]?)", size)
        if found and kind != "Instruction" and level.isdecimal():
            sizes[int(level)] = int(found[1]) * _UNITS[found[2]]
    return sizes[max(sizes)] if sizes else ASSUMED_BYTES


def _of_mac() -> int:
    for name in ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"):
        done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=False)
        if done.stdout.strip().isdecimal() and int(done.stdout) > 0:
            return int(done.stdout)
    return ASSUMED_BYTES
