"""An NVIDIA management library without a card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pynvml
import pytest

from workers.device import Device
from workers.measure import energy, nvml

UUID = "0f6b1f2e-8f0a-4a53-9d5e-0c1a2b3c4d5e"


@dataclass(frozen=True)
class Sample:
    """As NVML gives the utilisation by one process. timeStamp: microseconds since 1970. smUtil: per cent."""

    pid: int
    timeStamp: int
    smUtil: int


@dataclass
class Card:
    """What the card answers; an answer of None is `not supported`."""

    energy_mj: Callable[[], int] | None = None
    power_mw: int | None = 71_500
    limit_mw: int | None = 700_000
    clocks: dict[int, int] = field(
        default_factory=lambda: {pynvml.NVML_CLOCK_SM: 1755, pynvml.NVML_CLOCK_MEM: 2619}
    )
    temperature_c: int | None = 41
    reasons: int | None = 0
    processes: Sequence[Sample] | None = ()


class Library:
    """The functions of pynvml that we call, answered from a Card."""

    NVMLError = pynvml.NVMLError
    NVML_ERROR_NOT_FOUND = pynvml.NVML_ERROR_NOT_FOUND
    NVML_CLOCK_SM = pynvml.NVML_CLOCK_SM
    NVML_CLOCK_MEM = pynvml.NVML_CLOCK_MEM
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU

    def __init__(self, card: Card) -> None:
        self.card = card
        for name in nvml.REASONS:
            setattr(self, name, getattr(pynvml, name))

    def nvmlDeviceGetHandleByUUID(self, name: str) -> str:
        if name != f"GPU-{UUID}":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return "the card"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        return _supported(self.card.energy_mj)()

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return _supported(self.card.power_mw)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        return _supported(self.card.limit_mw)

    def nvmlDeviceGetPerformanceState(self, handle: str) -> int:
        return 0

    def nvmlDeviceGetClockInfo(self, handle: str, which: int) -> int:
        return self.card.clocks[which]

    def nvmlDeviceGetMaxClockInfo(self, handle: str, which: int) -> int:
        return 1980

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return _supported(self.card.temperature_c)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        return _supported(self.card.reasons)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlDeviceGetProcessUtilization(self, handle: str, since: int) -> Sequence[Sample]:
        found = [sample for sample in _supported(self.card.processes) if sample.timeStamp >= since]
        if not found:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return found


def _supported(answer: Any) -> Any:
    if answer is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return answer


@pytest.fixture
def gpu() -> Device:
    return Device("cuda:0", f"gpu-{UUID}", "a card", 1)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    """The card that NVML finds; tests change what it answers."""
    found = Card()
    library = Library(found)
    monkeypatch.setattr(nvml, "_library", lambda: library)
    monkeypatch.setattr(energy, "_idle", {})
    monkeypatch.setattr(energy, "SETTLE_SECONDS", 0.0)
    return found


@pytest.fixture
def sample() -> type[Sample]:
    return Sample
