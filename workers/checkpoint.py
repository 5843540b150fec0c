"""Checkpoints: safetensors files, written atomically, checked against their SHA-256 when they are read.

Nothing is unpickled. A file holds the network (`model/...`), the averaged weights (`ema/...`), the optimizer's
moments (`optimizer/<parameter>/...`), and as metadata what they belong to, the network (`arch`, JSON), how it was
trained (`execution`, JSON), the position in the schedule, and the pretrained weights that training began from
(`weights`, JSON).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from workers.errors import CheckpointError, MachineError
from workers.files import sync_folder
from workers.job import CheckpointRef, Job
from workers.knobs import DEFAULTS, knobs_of
from workers.recipe import Training, is_fine_tuned
from workers.settings import RecipeSettings

FOLDER = "checkpoints"
PARTIAL = ".partial"
NAMES = re.compile(r"-?\d+/(\d+-\d+-epoch\d+\.safetensors|\.\d+-\d+-epoch\d+\.safetensors\.\d+\.partial)")
"""Of the files that `save` writes, relative to `FOLDER`, and of the folders that unfinished ones lie in."""
_FIRST_SETTINGS = 12
"""Settings of a recipe that the first version had, with weights_dir."""
_FINE_TUNED = {"head_rate": 5e-3, "backbone_rate": 0.2, "layer_decay": 0.75}


def save(
    job: Job, training: Training, epoch: int, data_digest: str, facts: Mapping[str, str] | None = None
) -> CheckpointRef:
    """Writes `checkpoints/<candidate>/<job>-<attempt>-epoch<epoch>.safetensors` below job.artifacts.

    facts: further metadata, which `load_scored` gives back. Raises what `write` raises.
    """
    metadata = dict(facts or {}) | _identity(job, data_digest) | {"updates": str(training.updates)}
    metadata["arch"] = job.spec.canonical
    metadata["execution"] = json.dumps(dataclasses.asdict(job.execution))
    if training.loaded is not None:
        metadata["weights"] = json.dumps(training.loaded)
    return write(job, epoch, lambda path: save_file(_tensors(training), path, metadata))


def write(job: Job, epoch: int, make: Callable[[Path], object]) -> CheckpointRef:
    """Has `make` write a file, which appears under the checkpoint's name when it is complete and on disk, or never.

    Raises OSError or MachineError, where there is no room for it, say.
    """
    relative = Path(FOLDER, str(job.candidate), f"{job.id}-{job.attempt}-epoch{epoch}.safetensors")
    path = Path(job.artifacts, relative)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    partial = unfinished / path.name  # safetensors writes beside it first, under a name that we do not know
    try:
        unfinished.mkdir(exist_ok=True)
        try:
            make(partial)
        except SafetensorError as error:  # what its Rust half has instead of an OSError
            raise MachineError(f"{path}: cannot be written ({error})") from error
        with partial.open("rb+") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            num_bytes = file.tell()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    sync_folder(path.parent)
    return CheckpointRef(relative.as_posix(), epoch, sha256, num_bytes)


def load(job: Job, training: Training, data_digest: str) -> None:
    """Puts job.checkpoint into a freshly composed `training`: weights, average, moments, schedule position, and what
    pretrained weights it began from.

    Raises CheckpointError where the file is missing or changed, or is of another architecture, recipe or data.
    """
    ref = job.checkpoint
    if ref is None:
        raise CheckpointError(f"epoch {job.first_epoch} needs the checkpoint of epoch {job.first_epoch - 1}")
    if ref.epoch != job.first_epoch - 1:
        raise CheckpointError(f"{ref.path}: of epoch {ref.epoch}, but training goes on at {job.first_epoch}")
    tensors, metadata = _read(job.artifacts, ref, next(training.model.parameters()).device)
    wanted: dict[str, str | None] = {
        "teacher": None,
        "inherits": None,
        "precision": None,
        **_identity(job, data_digest),
    }
    for key, value in wanted.items():
        if metadata.get(key) != value:
            raise CheckpointError(f"{ref.path}: {key} is {metadata.get(key)}, but the job has {value}")
    _fill(ref, training.model, tensors, "model/")
    if training.ema is not None:
        _fill(ref, training.ema.module, tensors, "ema/")
    _fill_optimizer(training.optimizer, tensors)
    training.loaded = json.loads(metadata["weights"]) if "weights" in metadata else None
    training.seek(int(metadata["updates"]))


def load_scored(artifacts: str, ref: CheckpointRef, model: nn.Module) -> dict[str, str]:
    """Puts the weights that were validated (averaged where there are any) into `model`; returns the file's metadata.

    Raises CheckpointError.
    """
    tensors, metadata = _read(artifacts, ref, next(model.parameters()).device)
    averaged = any(name.startswith("ema/") for name in tensors)
    _fill(ref, model, tensors, "ema/" if averaged else "model/")
    return metadata


def _identity(job: Job, data_digest: str) -> dict[str, str]:
    """spec: with the name of its pretrained weights. recipe: the settings that this training uses. inherits, teacher:
    only where there is one. precision: where it is not fp32; how else steps were executed makes no difference."""
    return {
        "candidate": str(job.candidate),
        "spec": job.spec.digest,
        "recipe": hashlib.sha256(_recipe(job).encode()).hexdigest()[:16],
        "data": data_digest,
        **({} if job.inherit is None else {"inherits": job.inherit}),
        **({} if job.execution.precision == "fp32" else {"precision": job.execution.precision}),
        **_teacher(job),
    }


def _teacher(job: Job) -> dict[str, str]:
    settings = job.settings.recipe.distillation
    if settings is None or job.teacher is None:
        return {}
    heat = f" at {settings.heat:g}" if settings.kind == "soft" else ""
    return {"teacher": f"{settings.kind} {settings.alpha:g}{heat} {job.teacher.checkpoint.sha256}"}


def _recipe(job: Job) -> str:
    """How a training is done, as the first versions told it: later settings are told where they make a difference to
    it. So settings that concern other trainings leave a checkpoint valid, and so does a newer version."""
    recipe, fine_tunes = job.settings.recipe, is_fine_tuned(job.spec, job.settings.recipe, job.inherit)
    first = {field.name for field in dataclasses.fields(recipe)[:_FIRST_SETTINGS]} | set(_FINE_TUNED)
    unused = {"weights_dir"} if fine_tunes else {"weights_dir", *_FINE_TUNED}
    meant = dataclasses.asdict(DEFAULTS["plain"]) | _FINE_TUNED | {"warmup_epochs": None}
    told: dict[str, Any] = {}
    for name, value in dataclasses.asdict(recipe).items():
        if name in first - unused:
            told[name] = meant[name] if value is None else value
    same: dict[str, Any] = told | {"recipe": "finetune" if fine_tunes else "plain"}
    inherits = job.inherit is not None
    before = knobs_of(RecipeSettings(**same), fine_tunes, inherits)
    for name, value in dataclasses.asdict(knobs_of(recipe, fine_tunes, inherits)).items():
        if value != getattr(before, name):
            told[name] = value
    return f"RecipeSettings({', '.join(f'{name}={value!r}' for name, value in told.items())})"


def _tensors(training: Training) -> dict[str, Tensor]:
    tensors = {f"model/{name}": value for name, value in training.model.state_dict().items()}
    if training.ema is not None:
        tensors |= {f"ema/{name}": value for name, value in training.ema.module.state_dict().items()}
    for number, moments in training.optimizer.state_dict()["state"].items():
        kept = {name: value for name, value in moments.items() if isinstance(value, Tensor)}
        tensors |= {f"optimizer/{number}/{name}": value for name, value in kept.items()}
    return {name: value.detach().contiguous() for name, value in tensors.items()}


def _read(
    artifacts: str, ref: CheckpointRef, device: torch.device
) -> tuple[dict[str, Tensor], dict[str, str]]:
    path = Path(artifacts, ref.path)
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if sha256 != ref.sha256:
            raise CheckpointError(f"{path}: has changed since it was written (SHA-256 {sha256[:12]}...)")
        with safe_open(path, framework="pt", device=str(device)) as stored:
            return {name: stored.get_tensor(name) for name in stored.keys()}, stored.metadata() or {}  # noqa: SIM118
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: the checkpoint is missing") from error
    except SafetensorError as error:
        raise CheckpointError(f"{path}: no checkpoint ({error})") from error


def _fill(ref: CheckpointRef, model: nn.Module, tensors: dict[str, Tensor], prefix: str) -> None:
    state = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise CheckpointError(f"{ref.path}: the weights do not fit the network") from error


def _fill_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    moments: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer/"):
            _, number, name = key.split("/")
            moments.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if value.shape == parameter.shape and value.stride() != parameter.stride():
                # Fused steps take a parameter and its moments as lying alike.
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
