"""Reads what a folder's script found on another machine, checked. Standard library only."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaces.spec import ArchSpec
from workers.elsewhere import PROTOCOL, script
from workers.job import Measurement

_DEVICE = re.compile(r"[0-9A-Za-z.-]{1,120}")
_LABEL = re.compile(r"[^\x00-\x1f\x7f]{1,120}")
_FIRST_SECOND = 1_577_836_800
"""2020: no results are older."""
_POSITIVE = (
    "latency_ms",
    "latency_ms_low",
    "latency_ms_high",
    "latency_ms_p95",
    "throughput",
    "peak_memory_mb",
    "first_call_ms",
    "seconds",
)
_SHARES = ("latency_ms_spread", "latency_relative_error", "build_seconds")
MAX_BYTES = 64_000_000


class ResultsError(ValueError):
    """Results that cannot be believed; names the file, and what is wrong in it."""


@dataclass(frozen=True)
class Found:
    """One network, measured elsewhere. name: as it was shown. search, candidate: as in `carrying.Entry`. time: UTC
    seconds."""

    name: str
    spec: ArchSpec
    search: str | None
    candidate: int | None
    measurement: Measurement
    time: float


@dataclass(frozen=True)
class Results:
    """device: id, name, label, threads, cores. failures: in words."""

    device: Mapping[str, Any]
    found: tuple[Found, ...]
    failures: tuple[str, ...]


def read(path: Path, now: float | None = None) -> Results:
    """The results in a file. Raises ResultsError naming it when they are damaged, edited, or of another protocol, and
    when a figure is none that this protocol can give.

    The digests find damage and edits by hand; they are no signature, and do not prove who measured.
    """
    content = _content(path)
    manifest = content["manifest"]
    if not isinstance(manifest, dict) or manifest.get("sha256") != script.content_digest(manifest):
        raise ResultsError(f"{path}: manifest: has changed since the folder was written; measure again")
    if content.get("protocol") != PROTOCOL or manifest.get("protocol") != PROTOCOL:
        raise ResultsError(
            f"{path}: protocol: {content.get('protocol')!r}, and this version reads {PROTOCOL!r}; write a new folder "
            "with --bundle, and measure again"
        )
    try:
        device = _device(content["device"], manifest)
        models = {model["id"]: model for model in manifest["models"]}
        specs = {name: _spec(model) for name, model in models.items()}
        found = tuple(
            _found(result, models, specs, device, manifest, now or time.time())
            for result in content["results"]
        )
        failures = tuple(
            f"{models[each['id']]['name']}, batch {each['batch_size']}: {str(each['reason'])[:300]}"
            for each in content["failures"]
        )
    except ResultsError as error:
        raise ResultsError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ResultsError(
            f"{path}: is not what the script writes ({type(error).__name__}: {error})"
        ) from None
    return Results(device, found, failures)


def _content(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ResultsError(f"{path}: is larger than any results; give the results.json of a folder")
        content = json.loads(path.read_text())
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        if isinstance(error, ResultsError):
            raise
        raise ResultsError(f"{path}: is no JSON; bring the file over again") from None
    if not isinstance(content, dict) or content.get("format") != script.FORMAT or "manifest" not in content:
        raise ResultsError(f"{path}: holds no results of a folder that --bundle wrote")
    if content.get("sha256") != script.content_digest(content):
        raise ResultsError(f"{path}: has changed since it was written; bring it over again, or measure again")
    return content


def _device(device: Mapping[str, Any], manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    if not _DEVICE.fullmatch(device["id"]) or not _LABEL.fullmatch(device["label"]):
        raise ResultsError(f"device: {str(device['id'])[:60]!r} is no device's id")
    if not _LABEL.fullmatch(device["name"]) or device["threads"] != manifest["conditions"]["threads"]:
        raise ResultsError("device: does not fit the manifest")
    return {key: device[key] for key in ("id", "name", "label", "threads", "cores")}


def _spec(model: Mapping[str, Any]) -> ArchSpec:
    spec = ArchSpec.from_dict(model["spec"])
    if spec.digest != model["digest"]:
        raise ResultsError(f"{model['name']}: digest: is not that of its architecture")
    return spec


def _found(
    result: Mapping[str, Any],
    models: Mapping[str, Any],
    specs: Mapping[str, ArchSpec],
    device: Mapping[str, Any],
    manifest: Mapping[str, Any],
    now: float,
) -> Found:
    model, conditions = models[result["id"]], manifest["conditions"]
    _check_figures(model["name"], result, conditions, now)
    given = {
        key: result[key]
        for key in (*_POSITIVE, *_SHARES, "latency_ms_p99", "num_samples", "stopped_by", "batch_size")
    }
    measurement = Measurement(
        protocol=manifest["protocol"],
        device_id=device["id"],
        device_name=device["name"],
        threads=device["threads"],
        runtime=conditions["runtime"],
        precision=conditions["precision"],
        **given,
        throughput_batch_size=result["throughput_batch_size"],
        model_mb=model["model_mb"],
        flags=tuple(str(flag) for flag in result["flags"]),
        software={str(key): str(value) for key, value in result["software"].items()},
        conditions={
            "label": device["label"],
            "cores": device["cores"],
            "real_images": manifest["real_images"],
            **{str(key): value for key, value in result["conditions"].items()},
        },
    )
    return Found(
        model["name"],
        specs[result["id"]],
        model["search"],
        model["candidate"],
        measurement,
        float(result["time"]),
    )


def _check_figures(name: str, result: Mapping[str, Any], conditions: Mapping[str, Any], now: float) -> None:
    """Raises ResultsError for what the protocol cannot give."""
    for key in (*_POSITIVE, *_SHARES):
        value = result[key]
        if not _is_number(value) or value < 0 or (key in _POSITIVE and value == 0):
            raise ResultsError(f"{name}: {key}: {value!r} is no figure of a measurement")
    low, middle, high = result["latency_ms_low"], result["latency_ms"], result["latency_ms_high"]
    p99 = result["latency_ms_p99"]
    is_ordered = low <= middle <= high and middle <= result["latency_ms_p95"]
    if not is_ordered or (p99 is not None and not (_is_number(p99) and p99 >= result["latency_ms_p95"])):
        raise ResultsError(f"{name}: latency_ms: {low!r}, {middle!r}, {high!r} are in no order")
    if result["batch_size"] not in conditions["batch_sizes"] or result["stopped_by"] not in (
        "relative_error",
        "max_seconds",
    ):
        raise ResultsError(f"{name}: does not fit the manifest's conditions")
    count, at = result["num_samples"], result["throughput_batch_size"]
    if type(count) is not int or count < 3 or type(at) is not int or at < 1:
        raise ResultsError(f"{name}: num_samples: {count!r} calls at batch {at!r} are no measurement")
    if middle * count > 2e3 * result["seconds"]:
        raise ResultsError(
            f"{name}: {count} calls of {middle:.4g} ms do not fit into {result['seconds']:.4g} s"
        )
    least = result["batch_size"] / middle * 1e3
    if not 0.5 * least <= result["throughput"]:
        raise ResultsError(f"{name}: throughput: {result['throughput']!r} does not fit the latency")
    if not (_is_number(result["time"]) and _FIRST_SECOND < result["time"] < now + 86_400):
        raise ResultsError(
            f"{name}: time: {result['time']!r} lies in no time that it can have been measured at"
        )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
