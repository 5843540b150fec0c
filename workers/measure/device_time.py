"""What a call takes on a GPU by the GPU's own clock: the time between two events on its stream.

Beside the host's latency it tells what the host adds: launches that the device waits for lie inside, waking the host up
does not.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

MIN_SAMPLES = 20
MAX_SAMPLES = 500


def device_time_ms(
    launch: Callable[[], object],
    device: torch.device,
    seconds: float,
    before: Callable[[], object] = lambda: None,
) -> float | None:
    """Median over calls for `seconds`, at least 20 and at most 500; None on a CPU.

    launch: queues the warm call and need not wait for it. before: queued ahead of each, outside the figure, such as
    what empties a cache.
    """
    if device.type != "cuda":
        return None
    samples: list[float] = []
    end = time.perf_counter() + seconds
    with torch.cuda.device(device):
        while len(samples) < MIN_SAMPLES or (len(samples) < MAX_SAMPLES and time.perf_counter() < end):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before()
            start.record()
            launch()
            stop.record()
            stop.synchronize()
            samples.append(start.elapsed_time(stop))
    return statistics.median(samples)
