"""Scores of a trained network on one split: accuracy with its interval, recall of every class, loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import torch
from torch import nn
from torch.nn import functional

import spaces.models
from workers import checkpoint
from workers.data.batches import DeviceData, evaluation_batches, resident
from workers.errors import CandidateError, CheckpointError
from workers.job import Evaluation, Job

SMALLEST_BATCH = 64


@torch.no_grad()
def evaluate(
    model: nn.Module,
    data: DeviceData,
    split: str,
    epoch: int,
    batch_size: int,
    between_steps: Callable[[], float] = lambda: 0.0,
) -> tuple[Evaluation, float]:
    """Scores `model` on all images of a split, in evaluation mode; the mode is put back afterwards.

    between_steps: called before every batch. The second value is the seconds that it waited, summed.
    Raises CandidateError where the network's answers are not finite.
    """
    num_classes = len(data.class_names)
    correct = torch.zeros(num_classes, dtype=torch.int64, device=data.device)
    loss = torch.zeros((), device=data.device)
    paused = 0.0
    was_training = model.training
    model.eval()
    for images, labels in evaluation_batches(data, split, max(batch_size, SMALLEST_BATCH)):
        paused += between_steps()
        logits = model(images)
        loss += functional.cross_entropy(logits, labels, reduction="sum")
        correct += torch.bincount(labels[logits.argmax(1) == labels], minlength=num_classes)
    model.train(was_training)
    totals = torch.bincount(data.splits[split].labels, minlength=num_classes)
    return _evaluation(split, epoch, data.class_names, correct.tolist(), totals.tolist(), loss.item()), paused


def evaluate_checkpoint(
    job: Job, device: torch.device, split: str, between_steps: Callable[[], float] = lambda: 0.0
) -> tuple[Evaluation, str]:
    """Scores job.checkpoint on a split (`test` for finalists); also returns the data digest.

    Raises CheckpointError, DataError, CandidateError.
    """
    if job.checkpoint is None:
        raise CheckpointError("there is no checkpoint to evaluate")
    data = resident(job.settings.data, device, between_steps).at(job.spec.image_size)
    model = spaces.models.build(job.spec).to(device)
    checkpoint.load_scored(job.artifacts, job.checkpoint, model)
    batch_size = job.settings.recipe.batch_size
    scores, _ = evaluate(model, data, split, job.checkpoint.epoch, batch_size, between_steps)
    return scores, data.digest


def wilson(num_correct: int, num_images: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share (Wilson 1927, J. Am. Stat. Assoc. 22), inside 0 to 1; num_images > 0."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = num_correct / num_images
    scale = 1 + z * z / num_images
    middle = (share + z * z / (2 * num_images)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / num_images + (z / (2 * num_images)) ** 2)
    return max(0.0, middle - half), min(1.0, middle + half)


def _evaluation(
    split: str, epoch: int, class_names: tuple[str, ...], correct: list[int], totals: list[int], loss: float
) -> Evaluation:
    num_images = sum(totals)
    if not math.isfinite(loss):
        raise CandidateError(f"loss on the {split} split is {loss} after epoch {epoch}")
    low, high = wilson(sum(correct), num_images)
    return Evaluation(
        split=split,
        epoch=epoch,
        num_images=num_images,
        accuracy=sum(correct) / num_images,
        accuracy_low=low,
        accuracy_high=high,
        loss=loss / num_images,
        class_names=class_names,
        recall=tuple(hit / total if total else None for hit, total in zip(correct, totals, strict=True)),
    )
