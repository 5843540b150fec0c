"""All measurements of one architecture as a table: a line a fact, a column a measurement. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards import words
from search.store.read.rows import MeasurementView


@dataclass(frozen=True)
class MeasurementTable:
    """times: of each measurement, UTC seconds. lines: (what, one text a measurement)."""

    times: tuple[float, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]


def measurement_table(measurements: Sequence[MeasurementView], now: float) -> MeasurementTable:
    """Conditions first, since figures of different ones may not be compared; then what was found, then remarks.
    now: UTC seconds, which ages are told by."""
    lines = [(what, tuple(tell(one) for one in measurements)) for what, tell in _LINES]
    lines.append(("Remarks", tuple(_remarks(one, now) for one in measurements)))
    return MeasurementTable(tuple(one.time for one in measurements), tuple(lines))


def _figure(name: str, quantity: str | None = None) -> Callable[[MeasurementView], str]:
    return lambda m: words.number(quantity or name, m.figures.get(name))


def _latency(m: MeasurementView) -> str:
    bounds = words.interval("latency_ms", (m.figures["latency_ms_low"], m.figures["latency_ms_high"]))
    return f"{words.number('latency_ms', m.figures['latency_ms'])} ({bounds})"


def _percent(name: str) -> Callable[[MeasurementView], str]:
    return lambda m: f"{m.figures[name]:.2%}"


def _calls(m: MeasurementView) -> str:
    ended = str(m.figures["stopped_by"]).replace("_", " ")
    return f"{m.figures['num_samples']:,}, ended by {ended}"


def _throughput(m: MeasurementView) -> str:
    return (
        f"{words.number('throughput', m.figures['throughput'])} at batch {m.figures['throughput_batch_size']}"
    )


def _software(m: MeasurementView) -> str:
    return ", ".join(f"{name} {version}" for name, version in m.figures.get("software", {}).items()) or "–"


def _energy(m: MeasurementView) -> str:
    source = str(m.figures.get("energy_source") or "")
    if m.figures.get("energy_mj") is None:
        return source or "–"
    return f"{words.number('energy_mj', m.figures['energy_mj'])} ({source})"


def _state(m: MeasurementView) -> str:
    found = {name: value for name, value in m.figures.get("conditions", {}).items() if value is not None}
    return ", ".join(f"{name.replace('_', ' ')} {_told(value)}" for name, value in found.items()) or "–"


def _told(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return words.significant(value) if isinstance(value, float) else str(value)


def _remarks(m: MeasurementView, now: float) -> str:
    age = words.duration(max(0.0, now - m.time))
    cached = [f"taken over from an earlier measurement, {age} old"] if m.is_cached else []
    return ", ".join([*(str(flag) for flag in m.figures["flags"]), *cached]) or "none"


_LINES: tuple[tuple[str, Callable[[MeasurementView], Any]], ...] = (
    ("Device", lambda m: str(m.figures["device_name"])),
    ("Device id", lambda m: m.device_id),
    ("Threads", lambda m: str(m.threads)),
    ("Runtime", lambda m: m.runtime),
    ("Precision", lambda m: m.precision),
    ("Batch of the latency", lambda m: str(m.batch_size)),
    ("Cache", lambda m: str(m.figures.get("cache", "hot"))),
    ("Protocol", lambda m: m.protocol),
    ("Software", _software),
    ("State of the device", _state),
    ("Latency, median (ms), 95% interval", _latency),
    ("Latency, 95th percentile (ms)", _figure("latency_ms_p95")),
    ("Latency, 99th percentile (ms)", _figure("latency_ms_p99")),
    ("Time on the device (ms), median", _figure("device_ms", "latency_ms")),
    ("Spread: interquartile range ÷ median", _percent("latency_ms_spread")),
    ("Standard error of the median", _percent("latency_relative_error")),
    ("Calls", _calls),
    ("Throughput (images/s)", _throughput),
    ("Peak memory (MB)", _figure("peak_memory_mb")),
    ("Size of the weights (MB)", _figure("model_mb")),
    ("Energy an image (mJ)", _energy),
    ("Time to build (s)", _figure("build_seconds")),
    ("First call (ms)", _figure("first_call_ms")),
    ("Time of the measurement (s)", _figure("seconds")),
)
