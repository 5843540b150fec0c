"""Measures the networks of a folder that `paretovit measure --bundle` wrote. Needs Python 3.9, numpy and onnxruntime.

    python measure.py --label edge          # measures everything, writes results.json beside itself

This file is carried to other machines: it imports the standard library, numpy and onnxruntime alone.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from workers.elsewhere import machine, timing
from workers.measure import cpu, malloc

FORMAT = 1
MANIFEST, RESULTS = "manifest.json", "results.json"
MAX_REPEATS = 2
INPUT, OUTPUT = "images", "scores"


class FolderError(Exception):
    """The folder is not as it was written; names the file."""


def main(folder: Path, arguments: list[str] | None = None) -> int:
    """Measures what lies in `folder`; returns the exit code."""
    asked = _arguments(arguments)
    try:
        manifest = check_folder(folder)
        models = [model for model in manifest["models"] if not asked.only or model["id"] in asked.only]
        unknown = set(asked.only) - {model["id"] for model in models}
        if unknown:
            raise FolderError(f"--only: {sorted(unknown)[0]} is not in {folder / MANIFEST}")
        if asked.one:
            print(json.dumps(measure_one(folder, manifest, models[0], asked.batch)))
            return 0
        return _measure_all(folder, manifest, models, asked)
    except FolderError as error:
        print(f"measure.py: {error}", file=sys.stderr)
        return 1


def check_folder(folder: Path) -> dict[str, Any]:
    """The manifest. Raises FolderError, naming the file, where one is missing or is not what was written."""
    manifest = _json(folder / MANIFEST)
    if manifest.get("format") != FORMAT or manifest.get("sha256") != content_digest(manifest):
        raise FolderError(
            f"{folder / MANIFEST}: has changed since it was written; carry the folder over again"
        )
    for file in manifest["files"]:
        path = folder / file["path"]
        if not path.is_file():
            raise FolderError(f"{path}: is missing; carry the folder over again")
        if hashlib.sha256(path.read_bytes()).hexdigest() != file["sha256"]:
            raise FolderError(f"{path}: has changed since it was written; carry the folder over again")
    return manifest


def content_digest(content: dict[str, Any]) -> str:
    """SHA-256 of a JSON object, but for the digest that it holds itself."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def measure_one(
    folder: Path, manifest: dict[str, Any], model: dict[str, Any], batch_size: int
) -> dict[str, Any]:
    """Measures one network in this process, which should be a fresh one."""
    import numpy
    import onnxruntime

    start, conditions = time.perf_counter(), manifest["conditions"]
    threads, max_seconds = conditions["threads"], conditions["max_seconds"]
    images = numpy.load(folder / model["images"], allow_pickle=False)
    content = (folder / model["file"]).read_bytes()
    malloc.settle_threshold()

    def session() -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3  # errors
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def call_of(size: int, made: Any) -> timing.Work:
        feed = {INPUT: numpy.ascontiguousarray(images[numpy.arange(size) % len(images)])}
        return lambda: made.run([OUTPUT], feed)

    build_start = time.perf_counter()
    network = session()
    build_seconds = time.perf_counter() - build_start
    call = call_of(batch_size, network)
    first_call_ms = timing.time_call_ms(call)
    scores = network.run([OUTPUT], {INPUT: images[:1]})[0]
    if scores.ndim != 2 or not numpy.isfinite(scores).all():
        raise FolderError(f"{folder / model['file']}: onnxruntime's scores are not finite")
    gc.disable()
    found, load, is_contended = _undisturbed(call, conditions)
    throughput, best_batch = timing.best_throughput(
        lambda size: call_of(size, network),
        batch_size,
        found.summary.median,
        max_seconds * timing.THROUGHPUT_SHARE,
    )
    gc.enable()
    peak = machine.peak_memory_bytes(lambda: call_of(batch_size, session()))
    summary = found.summary
    return {
        "batch_size": batch_size,
        "latency_ms": summary.median,
        "latency_ms_low": summary.low,
        "latency_ms_high": summary.high,
        "latency_ms_p95": summary.p95,
        "latency_ms_p99": summary.p99,
        "latency_ms_spread": summary.spread,
        "latency_relative_error": summary.relative_error,
        "num_samples": summary.num_samples,
        "stopped_by": found.stopped_by,
        "throughput": throughput,
        "throughput_batch_size": best_batch,
        "peak_memory_mb": max(peak / 1e6, model["model_mb"]),
        "build_seconds": build_seconds,
        "first_call_ms": first_call_ms,
        "seconds": time.perf_counter() - start,
        "flags": ["contended"] if is_contended else [],
        "conditions": {"own_share": load["own_share"], "others_share": load["others_share"]},
        "software": {
            "onnxruntime": onnxruntime.__version__,
            "numpy": numpy.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
        },
    }


def _undisturbed(
    call: timing.Work, conditions: dict[str, Any]
) -> tuple[timing.Latency, dict[str, float | None], bool]:
    """The least disturbed of up to three times that the call was warmed up and timed."""
    found = []
    for _ in range(1 + MAX_REPEATS):
        timing.warm_up(call, conditions["max_seconds"] * timing.WARM_UP_SHARE)
        watch = machine.Watch()
        latency = timing.measure_latency(call, conditions["max_seconds"], conditions["relative_error"])
        load = watch.load()
        is_contended = machine.is_contended(load, conditions["threads"])
        found.append((latency, load, is_contended))
        if not is_contended:
            break
    return min(found, key=lambda each: (each[1]["others_share"] or 0.0, -(each[1]["own_share"] or 0.0)))


def _measure_all(
    folder: Path, manifest: dict[str, Any], models: list[dict[str, Any]], asked: argparse.Namespace
) -> int:
    """Every network in a process of its own, so that none finds what another left behind."""
    results, failures = [], []
    for model in models:
        for batch_size in manifest["conditions"]["batch_sizes"]:
            label = f"{model['name']}, batch {batch_size}"
            found = _in_a_process(folder, model["id"], batch_size)
            if isinstance(found, str):
                failures.append({"id": model["id"], "batch_size": batch_size, "reason": found})
                print(f"{label}: FAILED: {found}", flush=True)
                continue
            results.append({"id": model["id"], "time": time.time(), **found})
            flags = "".join(f"  {flag}" for flag in found["flags"])
            print(
                f"{label}: {found['latency_ms']:.4g} ms ({found['latency_ms_low']:.4g} to "
                f"{found['latency_ms_high']:.4g}), {found['peak_memory_mb']:.4g} MB{flags}",
                flush=True,
            )
    threads = manifest["conditions"]["threads"]
    content: dict[str, Any] = {
        "format": FORMAT,
        "protocol": manifest["protocol"],
        "device": {
            "id": machine.device_id(threads),
            "name": cpu.cpu_name(),
            "label": asked.label or platform.node(),
            "threads": threads,
            "cores": cpu.num_cores(),
        },
        "manifest": manifest,
        "results": results,
        "failures": failures,
    }
    content["sha256"] = content_digest(content)
    target = Path(asked.to) if asked.to else folder / RESULTS
    target.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    print(f"wrote {target}; bring it back: paretovit measure --import {target.name}")
    return 1 if failures else 0


def _in_a_process(folder: Path, model: str, batch_size: int) -> dict[str, Any] | str:
    """What was measured, or why it was not."""
    command = [
        sys.executable,
        str(folder / "measure.py"),
        "--one",
        "--only",
        model,
        "--batch",
        str(batch_size),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return lines[-1][:300]
    return json.loads(done.stdout.splitlines()[-1])


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror}); carry the folder over again") from None
    except ValueError:
        raise FolderError(f"{path}: is no JSON; carry the folder over again") from None
    if not isinstance(found, dict):
        raise FolderError(f"{path}: is no JSON object; carry the folder over again")
    return found


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"{os.path.basename(sys.executable)} measure.py",
        description="Measure the networks of this folder with onnxruntime on this machine's CPU.",
    )
    parser.add_argument(
        "--label", default="", help="how this machine is called in the search  [its host name]"
    )
    parser.add_argument("--to", default="", help=f"file to write  [{RESULTS}, beside this script]")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="measure this one; repeat")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)
