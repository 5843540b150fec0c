"""What NVIDIA's management library knows of one GPU: energy, clocks, temperature, limits, who works on it.

Nothing here raises: a library, a driver or a card that does not answer is None, as is every reading that a card does
not have. NVML sees the whole card, in containers too, and is untouched by what torch does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

from workers.device import Device

T = TypeVar("T")
REASONS: Mapping[str, str] = {
    "nvmlClocksEventReasonGpuIdle": "idle",
    "nvmlClocksEventReasonApplicationsClocksSetting": "application clocks",
    "nvmlClocksEventReasonSwPowerCap": "power limit",
    "nvmlClocksEventReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksEventReasonSyncBoost": "sync boost",
    "nvmlClocksEventReasonSwThermalSlowdown": "temperature",
    "nvmlClocksEventReasonHwThermalSlowdown": "temperature (hardware)",
    "nvmlClocksEventReasonHwPowerBrakeSlowdown": "power brake",
    "nvmlClocksEventReasonDisplayClockSetting": "display clocks",
}
"""Names in the library, and what they mean, of what may hold the clocks down."""


@dataclass(frozen=True)
class Gpu:
    """One card. library: pynvml. handle: the card's in it."""

    library: Any
    handle: Any

    def energy_mj(self) -> float | None:
        """Millijoules since the driver was loaded (Volta and newer)."""
        return self._read(self.library.nvmlDeviceGetTotalEnergyConsumption)

    def state(self) -> dict[str, Any]:
        """Clocks, temperature, power and what holds the clocks down, now."""
        library = self.library
        milliwatts = self._read(library.nvmlDeviceGetPowerUsage)
        limit = self._read(library.nvmlDeviceGetEnforcedPowerLimit)
        state = self._read(library.nvmlDeviceGetPerformanceState)
        return {
            "sm_clock_mhz": self._read(library.nvmlDeviceGetClockInfo, library.NVML_CLOCK_SM),
            "sm_clock_max_mhz": self._read(library.nvmlDeviceGetMaxClockInfo, library.NVML_CLOCK_SM),
            "memory_clock_mhz": self._read(library.nvmlDeviceGetClockInfo, library.NVML_CLOCK_MEM),
            "temperature_c": self._read(library.nvmlDeviceGetTemperature, library.NVML_TEMPERATURE_GPU),
            "power_w": None if milliwatts is None else milliwatts / 1000,
            "power_limit_w": None if limit is None else limit / 1000,
            "performance_state": None if state is None else f"P{state}",
            "throttle_reasons": self._throttle_reasons(),
            "driver": _asked(library, library.nvmlSystemGetDriverVersion),
        }

    def others_share(self, since_us: int) -> float | None:
        """Share of the time since then that processes other than this one kept the card's cores busy, the mean of the
        driver's samples; None where the driver does not tell, 0 where nothing worked.

        since_us: microseconds since 1970. In a container this process goes by another number there; then the one that
        worked most is taken for it.
        """
        try:
            samples = self.library.nvmlDeviceGetProcessUtilization(self.handle, since_us)
        except self.library.NVMLError as error:
            return 0.0 if error.value == self.library.NVML_ERROR_NOT_FOUND else None
        shares: dict[int, list[float]] = {}
        for sample in samples:
            if sample.timeStamp >= since_us:
                shares.setdefault(sample.pid, []).append(sample.smUtil / 100)
        means = {pid: sum(found) / len(found) for pid, found in shares.items()}
        if not means:
            return 0.0
        own = os.getpid() if os.getpid() in means else max(means, key=lambda pid: means[pid])
        return sum(share for pid, share in means.items() if pid != own)

    def _throttle_reasons(self) -> list[str] | None:
        library = self.library
        found = self._read(library.nvmlDeviceGetCurrentClocksEventReasons)
        if found is None:
            return None
        return [words for name, words in REASONS.items() if found & getattr(library, name, 0)]

    def _read(self, function: Callable[..., T], *arguments: Any) -> T | None:
        return _asked(self.library, function, self.handle, *arguments)


def gpu_of(device: Device) -> Gpu | None:
    """The card that a CUDA device is. None for a CPU, and where NVML or the card does not answer."""
    library = _library() if device.is_cuda else None
    if library is None:
        return None
    uuid = device.id.removeprefix("gpu-")
    for name in (f"GPU-{uuid}", uuid):  # the second for a slice of a card, `MIG-...`
        handle = _asked(library, library.nvmlDeviceGetHandleByUUID, name)
        if handle is not None:
            return Gpu(library, handle)
    return None


@cache
def _library() -> ModuleType | None:
    """pynvml, started; None where it is not installed or finds no driver."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _asked(library: Any, function: Callable[..., T], *arguments: Any) -> T | None:
    try:
        return function(*arguments)
    except library.NVMLError:
        return None
