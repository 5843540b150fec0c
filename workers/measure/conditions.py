"""The state of a device while it is measured, as far as the system tells: what a reader needs to explain a figure.

Names carry their units; what cannot be read is None. Versions are kept beside it, as `software`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import psutil

from workers.device import Device, cpu_name
from workers.measure.nvml import gpu_of

_CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_NO_TURBO = Path("/sys/devices/system/cpu/intel_pstate/no_turbo")
_BOOST = Path("/sys/devices/system/cpu/cpufreq/boost")
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")


def read(device: Device) -> dict[str, Any]:
    """Of the CPU always, which feeds a GPU too; of a GPU clocks, temperature, power and what held them down."""
    return processor() | (gpu(device) if device.is_cuda else {})


def processor() -> dict[str, Any]:
    """governor, turbo: as Linux has them. frequency_mhz: of the core that this thread is on, where it is told. cores:
    that this process may use."""
    return {
        "processor": cpu_name(),
        "cores": _cores(),
        "governor": _text(_CPUFREQ / "scaling_governor"),
        "frequency_mhz": _frequency(),
        "turbo": _turbo(),
        "processor_temperature_c": _temperature(),
        "load_1_minute": round(os.getloadavg()[0], 2),
    }


def gpu(device: Device) -> dict[str, Any]:
    """Empty where NVML does not know the card."""
    found = gpu_of(device)
    return {} if found is None else found.state()


def _cores() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _frequency() -> float | None:
    kilohertz = _text(_CPUFREQ / "scaling_cur_freq")
    if kilohertz is not None and kilohertz.isdecimal():
        return int(kilohertz) / 1000
    found = re.search(r"^cpu MHz\s*:\s*([\d.]+)", _text(Path("/proc/cpuinfo")) or "", re.MULTILINE)
    return float(found[1]) if found else None


def _turbo() -> bool | None:
    disabled, boost = _text(_NO_TURBO), _text(_BOOST)
    if disabled is not None:
        return disabled == "0"
    return None if boost is None else boost == "1"


def _temperature() -> float | None:
    if not hasattr(psutil, "sensors_temperatures"):
        return None
    try:
        found = psutil.sensors_temperatures()
    except (OSError, ValueError):
        return None
    readings = [sensor.current for name in _SENSORS for sensor in found.get(name, ())]
    return max(readings, default=None)


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
