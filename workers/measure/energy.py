"""Energy an image: what a device's counter says while one call is repeated, less what the device takes idle.

On a GPU the counter is NVML's of the whole card. On a CPU it is RAPL's of all processor packages (Linux), memory and
mainboard left out; reading it is root's unless the machine's owner allows it. Without a counter there is no figure, and
the reason is kept instead: nothing is estimated from rated powers.

Counters move every 20 to 100 ms, and some cards look a quarter of the time only
(https://arxiv.org/abs/2312.02741): windows last two seconds or more, and begin and end as the counter moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from workers.device import Device
from workers.measure.nvml import gpu_of

POWERCAP = Path("/sys/class/powercap")
MIN_SECONDS = 2.0
SETTLE_SECONDS = 0.5
"""Before the device counts as idle: clocks and fans go down."""
EDGE_SECONDS = 0.25
"""Longest wait for a counter to move."""
IDLE_KEPT_SECONDS = 300.0


class Counter(Protocol):
    """Millijoules that a device has taken; only differences mean anything."""

    @property
    def source(self) -> str:
        """What it counts, in words."""
        ...

    def read_mj(self) -> float | None:
        """None where it does not answer."""
        ...


@dataclass(frozen=True)
class Energy:
    """energy_mj: an image; None where it could not be told. source: what counted it, or why not. idle_w: what was
    taken off."""

    energy_mj: float | None
    source: str
    idle_w: float | None = None


@dataclass(frozen=True)
class GpuCounter:
    """NVML's counter of one card."""

    device: Device
    source: str = "NVML, the whole card"

    def read_mj(self) -> float | None:
        gpu = gpu_of(self.device)
        return None if gpu is None else gpu.energy_mj()


class RaplCounter:
    """The sum over the processor packages; a counter that starts again at its end is followed."""

    source = "RAPL, the processor packages of the whole machine"

    def __init__(self, folders: Sequence[Path]) -> None:
        """folders: of the packages, below /sys/class/powercap."""
        self._folders = folders
        self._ranges = [int((folder / "max_energy_range_uj").read_text()) for folder in folders]
        self._last = [self._raw(folder) for folder in folders]
        self._total_uj = 0

    def read_mj(self) -> float | None:
        try:
            now = [self._raw(folder) for folder in self._folders]
        except (OSError, ValueError):
            return None
        for before, after, size in zip(self._last, now, self._ranges, strict=True):
            self._total_uj += after - before if after >= before else after + size - before
        self._last = now
        return self._total_uj / 1000

    @staticmethod
    def _raw(folder: Path) -> int:
        return int((folder / "energy_uj").read_text())


def counter_of(device: Device) -> Counter | None:
    """The device's counter, where it answers."""
    if device.is_cuda:
        counter: Counter | None = GpuCounter(device)
    else:
        counter = _rapl(POWERCAP)
    return counter if counter is not None and counter.read_mj() is not None else None


def why_none(device: Device) -> str:
    """Why a device without a counter has none, as it is stored and shown."""
    if device.is_cuda:
        found = gpu_of(device)
        why = "NVML does not know the card" if found is None else "the card counts none"
    elif not _packages(POWERCAP):
        why = "the system has no RAPL"
    else:
        why = f"{POWERCAP}/*/energy_uj may not be read by this user"
    return f"no energy counter on this device: {why}"


def measure(
    device: Device, call: Callable[[], object], num_images: int, seconds: float, beat: Callable[[], object]
) -> Energy:
    """Energy of a warm `call` of `num_images` images, repeated for `seconds` or a little more. The device has to be
    exclusive, and is left idle first where its idle power was not read in the last five minutes."""
    counter = counter_of(device)
    if counter is None:
        return Energy(None, why_none(device))
    idle_w = _idle_watts(device.id, counter, seconds, beat)
    window = None if idle_w is None else _window(counter, call, seconds, beat)
    if idle_w is None or window is None:
        return Energy(None, f"{counter.source}: the counter does not move")
    millijoules, lasted, calls = window
    net = millijoules - idle_w * 1000 * lasted
    if net <= 0:
        return Energy(None, f"{counter.source}: not above idle ({idle_w:.1f} W)", idle_w)
    return Energy(net / (calls * num_images), counter.source, idle_w)


_idle: dict[str, tuple[float, float]] = {}
"""Device id -> when its idle power was read (monotonic), and the power in watts."""


def _idle_watts(device_id: str, counter: Counter, seconds: float, beat: Callable[[], object]) -> float | None:
    read_at, watts = _idle.get(device_id, (-IDLE_KEPT_SECONDS, 0.0))
    if time.monotonic() - read_at < IDLE_KEPT_SECONDS:
        return watts
    time.sleep(SETTLE_SECONDS)
    window = _window(counter, lambda: time.sleep(0.005), seconds, beat)
    if window is None:
        return None
    watts = window[0] / window[1] / 1000
    _idle[device_id] = (time.monotonic(), watts)
    return watts


def _window(
    counter: Counter, call: Callable[[], object], seconds: float, beat: Callable[[], object]
) -> tuple[float, float, int] | None:
    """(millijoules, seconds, calls) from one move of the counter to another, at least `seconds` later; None where it
    does not move."""
    start = _next_move(counter, call)
    if start is None:
        return None
    calls = 0
    while time.perf_counter() - start[1] < seconds:
        call()
        calls += 1
        beat()
    end = _next_move(counter, call)
    if end is None:
        return None
    return end[0] - start[0], end[1] - start[1], calls + end[2]


def _next_move(counter: Counter, call: Callable[[], object]) -> tuple[float, float, int] | None:
    """(millijoules, time, calls meanwhile) as the counter moves, calls going on."""
    before = counter.read_mj()
    deadline, calls = time.perf_counter() + EDGE_SECONDS, 0
    while before is not None:
        call()
        calls += 1
        now = counter.read_mj()
        if now is None:
            return None
        if now != before:
            return now, time.perf_counter(), calls
        if time.perf_counter() > deadline:
            return None
    return None


@cache
def _rapl(root: Path) -> RaplCounter | None:
    try:
        packages = _packages(root)
        return RaplCounter(packages) if packages else None
    except (OSError, ValueError):
        return None


def _packages(root: Path) -> list[Path]:
    """Of Intel and AMD alike (`intel-rapl:N`); their parts, `intel-rapl:N:M`, are counted in them."""
    return sorted(folder for folder in root.glob("intel-rapl:*") if folder.name.count(":") == 1)
