"""Scores of a trained network on one split: accuracy and every class's recall with their intervals, loss, what is taken
for what, and how far its confidence is from its accuracy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from statistics import NormalDist

import torch
from torch import Tensor, nn
from torch.nn import functional

import spaces.models
from workers import checkpoint
from workers.data.batches import DeviceData, evaluation_batches, resident
from workers.errors import CandidateError, CheckpointError
from workers.job import Evaluation, Job

SMALLEST_BATCH = 64
NUM_BINS = 15
"""Of the expected calibration error (Guo et al., arXiv:1706.04599): equal parts of the confidences from 0 to 1."""
MAX_CONFUSIONS = 200


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
    counts = _Counts(len(data.class_names), data.device)
    paused = 0.0
    was_training = model.training
    model.eval()
    for images, labels in evaluation_batches(data, split, max(batch_size, SMALLEST_BATCH)):
        paused += between_steps()
        counts.add(model(images), labels)
    model.train(was_training)
    return _evaluation(split, epoch, data.class_names, counts), paused


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


class _Counts:
    """Sums over the images, kept on their device: they are copied to the host at the end."""

    def __init__(self, num_classes: int, device: torch.device) -> None:
        self._num_classes = num_classes
        self._pairs: list[Tensor] = []
        self._loss = torch.zeros((), device=device)
        self._over = torch.zeros(NUM_BINS, dtype=torch.float64, device=device)

    def add(self, logits: Tensor, labels: Tensor) -> None:
        """logits: (batch, classes); labels: (batch,)."""
        self._loss += functional.cross_entropy(logits, labels, reduction="sum")
        confidence, answers = logits.softmax(1).max(1)
        self._pairs.append(labels * self._num_classes + answers)
        bins = (confidence * NUM_BINS).nan_to_num().long().clamp(0, NUM_BINS - 1)
        self._over.index_add_(0, bins, confidence.double() - (answers == labels).double())

    @property
    def loss(self) -> float:
        """Summed over the images."""
        return self._loss.item()

    @property
    def pairs(self) -> Counter[tuple[int, int]]:
        """How many images of a class, first, were taken for a class, second."""
        found, counts = torch.cat(self._pairs).unique(return_counts=True)
        return Counter(
            {
                divmod(pair, self._num_classes): count
                for pair, count in zip(found.tolist(), counts.tolist(), strict=True)
            }
        )

    @property
    def overconfidence(self) -> float:
        """Sum over the bins of |sum of confidences - images that were right|."""
        return self._over.abs().sum().item()


def _evaluation(split: str, epoch: int, class_names: tuple[str, ...], counts: _Counts) -> Evaluation:
    loss, pairs = counts.loss, counts.pairs
    if not math.isfinite(loss):
        raise CandidateError(f"loss on the {split} split is {loss} after epoch {epoch}")
    correct = [pairs[own, own] for own in range(len(class_names))]
    totals = [0] * len(class_names)
    for (own, _), count in pairs.items():
        totals[own] += count
    num_images = sum(totals)
    low, high = wilson(sum(correct), num_images)
    bounds = [wilson(hit, total) if total else None for hit, total in zip(correct, totals, strict=True)]
    wrong = sorted(
        ((own, other, count) for (own, other), count in pairs.items() if own != other),
        key=lambda one: (-one[2], *one[:2]),
    )
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
        recall_low=tuple(None if bound is None else bound[0] for bound in bounds),
        recall_high=tuple(None if bound is None else bound[1] for bound in bounds),
        class_counts=tuple(totals),
        calibration_error=counts.overconfidence / num_images,
        confusions=tuple(wrong[:MAX_CONFUSIONS]),
    )
