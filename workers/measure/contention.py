"""Work on a device that a measurement did not start: on a CPU what other processes took of the cores meanwhile, and
what kept the measuring thread from its own; on a GPU what they took of it, and timings that scatter.

Jobs of ours step aside for the device's lock; a browser, a backup or another user does not. What they take is read
from the system's own counters, whose ticks of 10 ms are allowed for, and on a GPU from the driver's samples.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil

from workers.device import Device
from workers.measure.nvml import gpu_of

MAX_OTHERS_SHARE = 0.2
"""Of one core. A quiet machine's own services stay under 0.05."""
MIN_OWN_SHARE = 0.95
TICKS_SECONDS = 0.03
"""How far counters in ticks may be off at both ends together."""


@dataclass(frozen=True)
class Load:
    """While something was timed on a CPU. seconds: wall clock. own_share: of it, what the timing thread had a core for.
    others_share: cores that other processes and the hypervisor took, on average."""

    seconds: float
    own_share: float
    others_share: float

    def is_contended(self, threads: int) -> bool:
        """threads: that the timed work may use; only one thread's wait for a core can be told from its own pauses."""
        kept_off = threads == 1 and self.own_share < MIN_OWN_SHARE
        return kept_off or self.others_share * self.seconds > MAX_OTHERS_SHARE * self.seconds + TICKS_SECONDS


MAX_GPU_SHARE = 0.05
"""Of a GPU. A desktop that draws nothing takes 0."""
MAX_GPU_SPREAD = 0.2
"""Interquartile range of the calls ÷ their median; work on another stream of the same process shows in nothing else."""


@dataclass(frozen=True)
class GpuLoad:
    """While something was timed on a GPU. others_share: of the GPU, what other processes took; None where the driver
    does not tell. spread: of the timings."""

    others_share: float | None
    spread: float

    def is_contended(self) -> bool:
        return (self.others_share or 0.0) > MAX_GPU_SHARE or self.spread > MAX_GPU_SPREAD


class GpuWatch:
    """Of one GPU, from its making on. A share of the GPU is told from samples of the driver, a few a second."""

    def __init__(self, device: Device) -> None:
        self._gpu = gpu_of(device)
        self._since_us = time.time_ns() // 1000

    def load(self, spread: float) -> GpuLoad:
        return GpuLoad(None if self._gpu is None else self._gpu.others_share(self._since_us), spread)


class Watch:
    """Of the CPU. Reads the counters as it is made, and again when it is asked."""

    def __init__(self) -> None:
        self._wall, self._thread = time.perf_counter(), time.thread_time()
        self._machine, self._process = _machine_seconds(), time.process_time()

    def load(self) -> Load:
        seconds = time.perf_counter() - self._wall
        own = time.process_time() - self._process
        others = max(0.0, _machine_seconds() - self._machine - own)
        return Load(seconds, (time.thread_time() - self._thread) / seconds, others / seconds)


def _machine_seconds() -> float:
    """Seconds that all cores have worked, the hypervisor's share included."""
    found = psutil.cpu_times()
    return sum(getattr(found, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))
