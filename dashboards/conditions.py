"""How everything was measured, on which images and with which settings, as pairs of words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards import words
from dashboards.search_data import SearchData
from search.drift import FLAG
from search.store.read.rows import MeasurementView

Pairs = list[tuple[str, str]]


def conditions(data: SearchData) -> list[tuple[str, Pairs]]:
    """(title, pairs): the images, then the measurements of each set of conditions."""
    found = [("Images", _images(data))]
    groups: dict[tuple[str, ...], list[MeasurementView]] = {}
    for _, measured in data.measurements:
        key = tuple(str(value) for value in (measured.figures["device_name"], *_of(measured)))
        groups.setdefault(key, []).append(measured)
    for key, members in groups.items():
        found.append(("Measurements", [*zip(_CONDITIONS, key, strict=True), *_spread(members, data.written)]))
    if data.drift is not None:
        found.append(("Steadiness of the device", [("Readings", data.drift)]))
    return found


_CONDITIONS = (
    "Device",
    "Device id",
    "Threads",
    "Runtime",
    "Precision",
    "Batch of the latency",
    "Cache",
    "Protocol",
)


def _of(m: MeasurementView) -> tuple[Any, ...]:
    return (
        m.device_id,
        m.threads,
        m.runtime,
        m.precision,
        m.batch_size,
        m.figures.get("cache", "hot"),
        m.protocol,
    )


def _spread(members: Sequence[MeasurementView], now: float) -> Pairs:
    calls = [int(member.figures["num_samples"]) for member in members]
    errors = [float(member.figures["latency_relative_error"]) for member in members]
    ages = [max(0.0, now - member.time) for member in members if member.is_cached]
    pairs = [
        ("Architectures", str(len({member.digest for member in members}))),
        ("Calls each", f"{min(calls):,} to {max(calls):,}"),
        ("Standard error of the median", f"{min(errors):.2%} to {max(errors):.2%} of it"),
    ]
    if not ages:
        return pairs
    return [*pairs, ("Taken over from earlier", f"{len(ages)}, the oldest {words.duration(max(ages))} old")]


def _images(data: SearchData) -> Pairs:
    images = data.search.data
    source = data.search.config["data"]
    names = [str(name) for name in images.get("class_names") or ()]
    more = f", … and {len(names) - 40} more" if len(names) > 40 else ""
    sizes = images.get("num_images") or {}
    return [
        ("Source", _joined([source.get("source"), source.get("path")])),
        (
            "Size",
            f"{images.get('image_size')} x {images.get('image_size')}, channels: {images.get('channels')}",
        ),
        ("Classes", f"{len(names)}: {', '.join(names[:40])}{more}"),
        ("Splits", ", ".join(f"{split} {count:,}" for split, count in sizes.items())),
        ("Digest", str(images.get("digest"))),
    ]


def flagged(data: SearchData) -> list[str]:
    """One line for each measurement that was not clean, but for those that were replaced since."""
    labels = {point.key: point.label for point in data.points}
    newest = {
        key: max(m.id for other, m in data.measurements if other == key) for key, _ in data.measurements
    }
    return [
        f"{labels[key]}: {', '.join(str(flag) for flag in measured.figures['flags'])}"
        for key, measured in data.measurements
        if measured.figures["flags"] and not (FLAG in measured.figures["flags"] and measured.id < newest[key])
    ]


def settings(config: Mapping[str, Any]) -> list[tuple[str, Pairs]]:
    """The config, a section a list; settings outside any section first."""
    top = [(key, _shown(value)) for key, value in config.items() if not isinstance(value, dict) or not value]
    sections = [
        (key, [(name, _shown(item)) for name, item in value.items()])
        for key, value in config.items()
        if isinstance(value, dict) and value
    ]
    return [("search.yaml", top), *sections]


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return _joined([f"{name}: {_shown(item)}" for name, item in value.items()]) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(item) for item in value)
    return str(value)


def _joined(parts: Sequence[Any]) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, ""))
