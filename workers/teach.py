"""A teach job: makes the teacher of a search, once, for all that learn from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

import spaces.models
from spaces.spec import ArchSpec
from workers import checkpoint
from workers.data.batches import resident
from workers.errors import CandidateError, CheckpointError
from workers.evaluate import evaluate
from workers.job import Emit, Job
from workers.train import TrainResult, train


@dataclass(frozen=True)
class Origin:
    """What a checkpoint file says of itself. data: digest of the images and splits that it was trained on."""

    spec: ArchSpec
    data: str


def teach(job: Job, device: torch.device, emit: Emit, between_steps: Callable[[], float]) -> TrainResult:
    """Trains the teacher as its settings say, or takes a checkpoint file over into the job's artifacts and scores it.

    Raises what `train` raises; CandidateError for a file that is no teacher for these images.
    """
    recipe = job.settings.recipe
    settings = recipe.distillation
    assert settings is not None, "a teach job says what teacher it makes"
    if settings.teacher.checkpoint is not None:
        return _take_over(job, Path(settings.teacher.checkpoint), device, between_steps)
    own = replace(job.settings, recipe=settings.of_teacher(recipe))
    return train(replace(job, settings=own), device, emit, between_steps)


def origin_of(path: Path) -> Origin:
    """Raises CandidateError, in one line that begins with the path, for a file that is no checkpoint of ours."""
    if path.is_dir():
        raise CandidateError(f"{path}: is a folder; name the checkpoint file in it")
    try:
        with safe_open(path, framework="np") as stored:
            metadata = stored.metadata() or {}
    except FileNotFoundError:
        raise CandidateError(f"{path}: no such file") from None
    except (SafetensorError, OSError) as error:
        raise CandidateError(f"{path}: no checkpoint ({error})") from None
    try:
        return Origin(ArchSpec.from_dict(json.loads(metadata["arch"])), metadata["data"])
    except (KeyError, ValueError, TypeError):
        raise CandidateError(
            f"{path}: does not say what network it holds; only checkpoints that a search writes do"
        ) from None


def _take_over(job: Job, path: Path, device: torch.device, between_steps: Callable[[], float]) -> TrainResult:
    """The copy has epoch 0: no epoch of it was trained here."""
    data = resident(job.settings.data, device, between_steps).at(job.spec.image_size)
    origin = origin_of(path)
    if origin.spec != job.spec:
        raise CandidateError(f"{path}: holds another network than when the search began")
    if origin.data != data.digest:
        raise CandidateError(f"{path}: was trained on other images or splits (digest {origin.data})")
    ref = checkpoint.write(job, 0, lambda copy: shutil.copyfile(path, copy))
    model = spaces.models.build(job.spec).to(device)
    try:
        checkpoint.load_scored(job.artifacts, ref, model)
    except CheckpointError as error:
        raise CandidateError(f"{path}: {error}") from error
    evaluation, _ = evaluate(model, data, "val", 0, job.settings.recipe.batch_size, between_steps)
    return TrainResult((), 0, ref, evaluation, data.digest, stopped=False)
