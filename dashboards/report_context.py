"""What the report says, in words and rows: from `ReportData` to the values that its template prints. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dashboards import words
from dashboards.figures import palette
from dashboards.figures.curves import CurvesInfo, at_rungs
from dashboards.figures.front import FrontInfo, front_line
from dashboards.figures.points import Point
from dashboards.report_data import MOST_EVENTS, ReportData, limit_words
from search.front import Conditions
from search.store.read.rows import EventView, MeasurementView


def context(data: ReportData, front: FrontInfo, curves: CurvesInfo) -> dict[str, Any]:
    """Everything that the template prints, but for the scripts and the embedded figures."""
    counts = Counter(point.group for point in data.points)
    return {
        "search": data.search,
        "headline": _headline(data),
        "figures": _figures(data, counts),
        "front_words": _front_words(data, counts),
        "limits": limit_words(data.view),
        "front_caption": _caption(front),
        "axes": list(front.axes.values()),
        "chosen": {"x": front.x, "y": front.y},
        "legend": [
            _legend(group, counts) for group in reversed(palette.GROUPS.values()) if counts[group.key]
        ],
        "columns": _columns(front),
        "rows": [_row(point, front) for point in _sorted(front)],
        "has_curves": bool(curves.curves),
        "curves_caption": _curves_caption(curves),
        "rungs": curves.rungs,
        "curve_rows": [_curve_row(curve.point, at_rungs(curve, curves.rungs)) for curve in curves.curves],
        "measured_words": [
            (data.axes[name].label, how) for name, how in data.view.measured_how.items() if name in front.axes
        ],
        "conditions": _conditions(data),
        "flagged": _flagged(data),
        "settings": _settings(data.search.config),
        "events": [_event(event) for event in data.events],
        "events_words": _events_words(len(data.events)),
    }


def _headline(data: ReportData) -> str:
    return f"Vision-transformer architectures, searched for {_objectives(data)}."


def _figures(data: ReportData, counts: Mapping[str, int]) -> list[dict[str, str]]:
    candidates = [point for point in data.points if point.group != palette.BASELINE]
    best = max(
        (p for p in candidates if p.group == palette.FRONT and "accuracy" in p.values),
        key=lambda point: point.values["accuracy"],
        default=None,
    )
    sizes = data.search.data.get("num_images") or {}
    conditions = data.view.conditions
    seconds = (data.search.ended or data.written) - data.search.started if data.search.started else None
    finished = sum(point.state == "finished" for point in candidates)
    figures = [
        ("State", data.search.state, words.duration(seconds) if seconds else ""),
        (
            "Candidates",
            str(len(candidates)),
            f"{finished} trained in full, {counts[palette.FRONT]} on the front",
        ),
        (
            "Device",
            conditions.device_name if conditions else (data.search.device_id or "–"),
            _device(conditions) if conditions else "",
        ),
        (
            "Images",
            f"{sum(sizes.values()):,}",
            ", ".join(f"{count:,} {split}" for split, count in sizes.items()),
        ),
    ]
    if best is not None:
        accuracy = words.number("accuracy", best.values["accuracy"])
        figures.insert(2, ("Best accuracy", accuracy, _with_interval(best)))
    return [{"term": term, "value": value, "more": more} for term, value, more in figures]


def _with_interval(point: Point) -> str:
    bounds = words.interval("accuracy", point.intervals.get("accuracy"))
    return f"{point.label}, {bounds} (95%)" if bounds else point.label


def _front_words(data: ReportData, counts: Mapping[str, int]) -> str:
    number = counts[palette.FRONT]
    if not number:
        return "No candidate has been trained in full within the limits yet, so there is no front."
    one = "1 candidate is" if number == 1 else f"{number} candidates are"
    return f"{one} on the front of {_objectives(data)}: trained in full, within all limits, and beaten by no other."


def _objectives(data: ReportData) -> str:
    *others, last = data.objectives
    return f"{', '.join(others)} and {last}" if others else last


def _caption(front: FrontInfo) -> str:
    parts = ["Bars are 95% intervals of front points and baselines."]
    if len(front_line(front, front.x, front.y)) > 1:
        parts.append("The stepped line is what the front attains.")
    if any(point.group in (palette.STOPPED, palette.UNFINISHED) for point in front.points):
        parts.append("Accuracies of stopped and unfinished candidates are those of a shorter training.")
    if any("accuracy" not in point.values for point in front.points):
        parts.append("Below the plot: candidates without an accuracy, which were never trained.")
    return " ".join(parts)


def _curves_caption(curves: CurvesInfo) -> str:
    text = "Validation accuracy of the front and the baselines. Larger markers: rungs, where it is decided who goes on."
    left_out = len(curves.curves) - len(curves.drawn)
    return f"{text} {left_out} further front candidates are in the table only." if left_out else text


def _legend(group: palette.Group, counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "key": group.key,
        "label": group.label,
        "help": group.help,
        "path": group.path,
        "filled": group.filled,
        "count": counts[group.key],
    }


def _columns(front: FrontInfo) -> list[dict[str, str]]:
    """Headings. kind: how the column sorts; first: the order that its first press gives."""
    quantities = {
        name: _column(
            axis.label, "number", "number", "descending" if axis.direction == "max" else "ascending"
        )
        for name, axis in front.axes.items()
    }
    return [
        _column("No.", "number", ""),
        _column("Kind", "number", "", order="ascending"),
        _column("Family", "text", ""),
        *(quantities[name] for name in front.objectives),
        _column("Architecture", "text", ""),
        *(column for name, column in quantities.items() if name not in front.objectives),
        _column("Epochs", "number", "number", "descending"),
    ]


def _column(label: str, kind: str, look: str, first: str = "ascending", order: str = "") -> dict[str, str]:
    return {"label": label, "kind": kind, "look": look, "first": first, "sorted": order}


def _sorted(front: FrontInfo) -> list[Point]:
    """Front first, by its first axis; then the other groups as in the legend."""
    order = [group.key for group in reversed(palette.GROUPS.values())]
    return sorted(
        front.points, key=lambda p: (order.index(p.group), p.values.get(front.x, float("inf")), p.number)
    )


def _row(point: Point, front: FrontInfo) -> dict[str, Any]:
    return {
        "key": point.key,
        "number": point.number,
        "label": point.label,
        "group": palette.GROUPS[point.group],
        "family": point.family,
        "objectives": [_cell(point, name) for name in front.objectives],
        "others": [_cell(point, name) for name in front.axes if name not in front.objectives],
        "epoch": point.epoch,
        "architecture": point.architecture,
        "rebuild": words.rebuild(point.spec.model, point.spec.args),
        "note": point.note,
    }


def _cell(point: Point, name: str) -> dict[str, str]:
    value = point.values.get(name)
    partial = name == "accuracy" and value is not None and not point.trained_in_full
    return {
        "text": words.number(name, value),
        "sort": "" if value is None else repr(value),
        "interval": words.interval(name, point.intervals.get(name)),
        "remark": f"after {point.training}" if partial else "",
    }


def _curve_row(point: Point, cells: list[str]) -> dict[str, Any]:
    return {"label": f"{point.label} {point.family}".strip(), "cells": cells}


def _device(conditions: Conditions) -> str:
    threads = "1 thread" if conditions.threads == 1 else f"{conditions.threads} threads"
    return f"{threads}, {conditions.runtime} {conditions.precision}, batch {conditions.batch_size}"


def _conditions(data: ReportData) -> list[tuple[str, list[tuple[str, str]]]]:
    found = [("Images", _images(data))]
    groups: dict[tuple[str, ...], list[MeasurementView]] = {}
    for _, measured in data.measurements:
        key = tuple(str(value) for value in (measured.figures["device_name"], *_of(measured)))
        groups.setdefault(key, []).append(measured)
    for key, members in groups.items():
        found.append(("Measurements", [*zip(_CONDITIONS, key, strict=True), *_spread(members)]))
    return found


_CONDITIONS = ("Device", "Device id", "Threads", "Runtime", "Precision", "Batch of the latency", "Protocol")


def _of(m: MeasurementView) -> tuple[Any, ...]:
    return (m.device_id, m.threads, m.runtime, m.precision, m.batch_size, m.protocol)


def _spread(members: Sequence[MeasurementView]) -> list[tuple[str, str]]:
    calls = [int(member.figures["num_samples"]) for member in members]
    errors = [float(member.figures["latency_relative_error"]) for member in members]
    cached = sum(member.is_cached for member in members)
    pairs = [
        ("Architectures", str(len({member.digest for member in members}))),
        ("Calls each", f"{min(calls):,} to {max(calls):,}"),
        ("Standard error of the median", f"{min(errors):.2%} to {max(errors):.2%} of it"),
    ]
    return [*pairs, ("Taken over from earlier", str(cached))] if cached else pairs


def _images(data: ReportData) -> list[tuple[str, str]]:
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


def _flagged(data: ReportData) -> list[str]:
    labels = {point.key: point.label for point in data.points}
    return [
        f"{labels[key]}: {', '.join(str(flag) for flag in measured.figures['flags'])}"
        for key, measured in data.measurements
        if measured.figures["flags"]
    ]


def _settings(config: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
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


def _event(event: EventView) -> dict[str, str]:
    return {
        "time": words.moment(event.time),
        "kind": event.kind,
        "candidate": "" if event.candidate is None else str(event.candidate),
        "text": event.text,
    }


def _events_words(number: int) -> str:
    return f"The last {number}, oldest first." if number >= MOST_EVENTS else "Oldest first."
