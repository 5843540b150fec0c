"""Peak memory of one network: what a second copy of it adds while it answers one call.

A second copy, because the first call of a process also loads libraries and code that no network is to blame for.
On a GPU this is the peak of torch's allocator, or, of a runtime with an allocator of its own, what the card has less of
afterwards (such allocators keep what they took). On a CPU it is resident memory: Linux resets the process's high-water
mark (proc(5), /proc/self/clear_refs) and counts it exactly. Elsewhere a thread reads the resident size every
millisecond, and a shorter peak can escape it. `workers.measure.malloc` keeps what the process freed before, and what
malloc sets aside for later, out of the figure. Scratch memory that a library keeps between calls is not counted.
1 MB is 10^6 bytes.
"""

from __future__ import annotations

import gc
import re
import statistics
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import psutil
import torch
from torch import Tensor

from workers.measure import malloc
from workers.runtimes.torch_runtime import Model

MB = 1_000_000
MAX_REPEATS = 3
_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def peak_memory_mb(model: Model, images: Tensor, max_seconds: float) -> float:
    """Median of up to three readings, the later ones only within `max_seconds`. Under `torch.inference_mode`.

    One more goes before them and is not counted: the first touches pages that the next ones find in place.
    """
    if model.device.type == "cuda":
        reading = _cuda_reading if model.uses_torch_memory else _card_reading
    else:
        reading = _resident_reading
    reading(model, images)
    start, readings = time.perf_counter(), []
    while not readings or (len(readings) < MAX_REPEATS and time.perf_counter() - start < max_seconds):
        readings.append(reading(model, images) / MB)
    return statistics.median(readings)


def _cuda_reading(model: Model, images: Tensor) -> int:
    before = torch.cuda.memory_allocated(model.device)
    torch.cuda.reset_peak_memory_stats(model.device)
    model.duplicate().call(images)()
    return torch.cuda.max_memory_allocated(model.device) - before


def _card_reading(model: Model, images: Tensor) -> int:
    """Of the whole card: a training beside it that grows meanwhile would be counted."""
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.mem_get_info(model.device)[0]
    second = model.duplicate()
    second.call(images)()
    return max(before - torch.cuda.mem_get_info(model.device)[0], second.num_bytes())


def _resident_reading(model: Model, images: Tensor) -> int:
    gc.collect()
    with malloc.fresh_blocks():
        before = _resident()
        peak = _peak_during(model.duplicate().call(images))
    # Pages that freed memory left behind may have served a part: the weights at least were needed.
    return max(peak - before, model.num_bytes())


def _peak_during(call: Callable[[], object]) -> int:
    """Highest resident size in bytes while `call` runs."""
    if not _has_high_water_mark():
        return _sampled_peak(call)
    _CLEAR_REFS.write_text("5")
    call()
    return _status("VmHWM")


@cache
def _has_high_water_mark() -> bool:
    try:
        _CLEAR_REFS.write_text("5")
        return _status("VmHWM") > 0 and _status("VmRSS") > 0
    except OSError:
        return False


def _sampled_peak(call: Callable[[], object], period: float = 0.001) -> int:
    process, done = psutil.Process(), threading.Event()
    seen = [process.memory_info().rss]

    def watch() -> None:
        while not done.wait(period):
            seen.append(process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        call()
    finally:
        done.set()
        thread.join()
    return max(*seen, process.memory_info().rss)


def _resident() -> int:
    return _status("VmRSS") if _has_high_water_mark() else psutil.Process().memory_info().rss


def _status(key: str) -> int:
    found = re.search(rf"^{key}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"{_STATUS} has no {key}")
    return int(found[1]) * 1024
