"""Is this machine ready for a search? One finding a check, each with a remedy where something is wrong."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from search.errors import UserError
from search.store.location import locate
from search.store.session import open_store

OLDEST_PYTHON = (3, 11)
LEAST_FREE_GB = 2.0
DISTRIBUTIONS = (
    "fastapi",
    "huggingface-hub",
    "torch",
    "torchvision",
    "timm",
    "optuna",
    "ray",
    "sqlalchemy",
    "plotly",
    "pydantic",
    "moocore",
)
_RAY_SECONDS = 90.0
_START_RAY = """
import ray
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
assert ray.get(ray.remote(lambda: 7).remote()) == 7
ray.shutdown()
"""


@dataclass(frozen=True)
class Finding:
    """subject: what was looked at. text: what was found. remedy: what to do; None where all is well.
    is_problem: False where a search runs without what is missing."""

    subject: str
    text: str
    remedy: str | None = None
    is_problem: bool = True


def examine(db: str | None, weights_dir: str | None, *, start_ray: bool) -> Iterator[Finding]:
    """Findings one by one, quick ones first. db: as for every command. weights_dir: as `training.weights_dir`.
    start_ray: starts and stops a local Ray."""
    yield python()
    yield from (distribution(name) for name in DISTRIBUTIONS)
    yield amd_bindings()
    yield database(db)
    yield disk(locate(db).artifacts_root)
    yield devices()
    yield pretrained_weights(weights_dir)
    yield onnx()
    if start_ray:
        yield ray()
        if os.environ.get("RAY_ADDRESS"):
            yield ray_labels()


def python() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return Finding("python", text, "paretovit needs 3.11 or newer; make an environment with one")
    return Finding("python", text)


def distribution(name: str) -> Finding:
    try:
        return Finding(name, version(name))
    except PackageNotFoundError:
        return Finding(name, "is not installed", "pip install --upgrade paretovit")


def amd_bindings() -> Finding:
    """`amdsmi` without ROCm makes `import ray` fail (KeyError: libamd_smi.so)."""
    if find_spec("amdsmi") is None:
        return Finding("amdsmi", "is not installed, and need not be")
    if not Path("/opt/rocm").exists():
        return Finding("amdsmi", "is installed without ROCm, and stops Ray", "pip uninstall amdsmi zeus")
    return Finding("amdsmi", "is installed, with ROCm")


def database(db: str | None) -> Finding:
    location = locate(db)
    if location.path is not None and not location.path.exists():
        folder = location.path.parent
        if not folder.is_dir():
            return Finding("database", f"{folder} does not exist", f"mkdir -p {folder}, or give --db")
        return Finding("database", f"{location.label} will be made by the first search")
    try:
        open_store(db, create=False).close()
    except UserError as error:
        text, _, remedy = str(error).partition("; ")
        return Finding("database", text, remedy or "give --db another path")
    return Finding("database", f"{location.label} can be read")


def disk(folder: Path) -> Finding:
    """Free space where checkpoints will lie."""
    place = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    free = shutil.disk_usage(place).free / 1e9
    text = f"{free:.1f} GB free at {place}"
    if free < LEAST_FREE_GB:
        return Finding("disk", text, f"free {LEAST_FREE_GB:g} GB, or set artifacts: to another folder")
    return Finding("disk", text)


def devices() -> Finding:
    from workers import device

    return Finding("devices", ", ".join(device.available()))


def pretrained_weights(weights_dir: str | None) -> Finding:
    """Whether the weights of the pretrained baselines can be had."""
    from spaces.baselines import PRETRAINED
    from workers import weights

    if weights_dir is not None and not Path(weights_dir).is_dir():
        return Finding("weights", f"{weights_dir} is no folder", "make it, or give --weights-dir another")
    names = PRETRAINED.values()
    missing = [name for name in names if not weights.reachable(name, weights_dir)]
    if not missing:
        return Finding("weights", f"{', '.join(names)} can be had")
    return Finding(
        "weights",
        f"{', '.join(missing)} are neither on this machine nor to be had from the hub",
        "only fine-tuning needs them: go online, or put NAME.safetensors into a folder and name it by "
        "training.weights_dir",
        is_problem=False,
    )


def onnx() -> Finding:
    """What `export --onnx` needs."""
    missing = [name for name in ("onnx", "onnxruntime", "onnxscript") if find_spec(name) is None]
    if missing:
        text = f"{', '.join(missing)} not installed"
        return Finding(
            "onnx", text, "only export --onnx needs it: pip install 'paretovit[export]'", is_problem=False
        )
    return Finding("onnx", "can be exported")


def ray_labels() -> Finding:
    """Which nodes of the cluster in RAY_ADDRESS `cost.device: {label: NAME}` may name."""
    command = [sys.executable, "-c", "from search import ray_nodes; print(ray_nodes.seen())"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RAY_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Finding("ray nodes", f"did not answer in {_RAY_SECONDS:g} s", "look at: ray status")
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
        return Finding("ray nodes", reason, "mend RAY_ADDRESS, or leave it out for a Ray of this machine")
    text = done.stdout.strip()
    if "labelled" in text:
        return Finding("ray nodes", text)
    remedy = "only cost.device: {label: NAME} needs one: ray start --labels paretovit=NAME"
    return Finding("ray nodes", text, remedy, is_problem=False)


def ray() -> Finding:
    """Starts Ray and runs one task, in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _START_RAY],
            capture_output=True,
            text=True,
            timeout=_RAY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Finding(
            "ray start", f"did not start in {_RAY_SECONDS:g} s", "use search.engine: inline meanwhile"
        )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
        return Finding("ray start", reason, "pip install --upgrade 'ray[tune]', or use search.engine: inline")
    return Finding("ray start", "started, ran a task, stopped")
