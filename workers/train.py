"""Epochs first..last of one candidate: a prefix of one schedule, resumed and left at epoch borders."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers import checkpoint, distillation, executing
from workers.data.batches import (
    Augment,
    Batch,
    DeviceData,
    batches_per_epoch,
    resident,
    training_batches,
)
from workers.errors import CandidateError
from workers.evaluate import evaluate
from workers.job import CheckpointRef, Decision, Emit, EpochReport, Evaluation, Job
from workers.recipe import Training, compose, is_fine_tuned, seed_of
from workers.weights import locate

BetweenSteps = Callable[[], float]


@dataclass(frozen=True)
class TrainResult:
    """epochs: of this job. epoch: completed by the candidate. stopped: told to stop before job.last_epoch.
    evaluation: on the validation split, after the last epoch. notes: settings that this network cannot use, and the
    pretrained weights that it began from."""

    epochs: tuple[EpochReport, ...]
    epoch: int
    checkpoint: CheckpointRef
    evaluation: Evaluation
    data_digest: str
    stopped: bool
    notes: Mapping[str, Any] = field(default_factory=dict)


def train(job: Job, device: torch.device, emit: Emit, between_steps: BetweenSteps) -> TrainResult:
    """Trains job.first_epoch..job.last_epoch, validating and reporting after each, and writes a checkpoint at the end.

    between_steps: called before every step, also of validation and of decoding; returns the seconds it waited.
    emit: an answer of STOP ends the job after the epoch reported, with a checkpoint.
    On a CPU with one thread, epochs 1..n in one job or in several end in the same bits.
    Raises CandidateError (loss not finite, output of a wrong shape, weights that do not fit), CheckpointError,
    DataError, MachineError (weights that are not to be had), OSError.
    """
    data = resident(job.settings.data, device, between_steps).at(job.spec.image_size)
    _check_fit(job, data)
    training = _begin(job, data, device, between_steps)
    reports: list[EpochReport] = []
    while True:
        epoch = job.first_epoch + len(reports)
        report, evaluation = _epoch(job, training, data, epoch, between_steps)
        reports.append(report)
        stop = emit(report) is Decision.STOP
        if stop or epoch >= job.last_epoch:
            break
    return TrainResult(
        epochs=tuple(reports),
        epoch=epoch,
        checkpoint=checkpoint.save(job, training, epoch, data.digest, data.normalisation),
        evaluation=evaluation,
        data_digest=data.digest,
        stopped=epoch < job.last_epoch,
        notes=_notes(job, training) | dict(data.notes),
    )


def _begin(job: Job, data: DeviceData, device: torch.device, between_steps: BetweenSteps) -> Training:
    """At the job's first epoch. Pretrained weights are needed for epoch 1 alone."""
    spec, recipe = job.spec, job.settings.recipe
    weights = None
    if is_fine_tuned(spec, recipe, job.inherit) and job.weights is not None and job.first_epoch == 1:
        weights = locate(job.weights, recipe.weights_dir, between_steps)
    batches = batches_per_epoch(len(data.splits["train"]), recipe.batch_size)
    seed = seed_of(recipe.seed, job.candidate, "weights")
    training = compose(spec, recipe, batches, seed, device, weights, job.inherit)
    executing.execute(training, job.execution)
    if job.first_epoch > 1:
        checkpoint.load(job, training, data.digest)
    training.class_weights = data.class_weights
    is_changed = _augment(job, training, data) != Augment()
    training.distillation = distillation.begin(job, training.model, data, is_changed, between_steps)
    return training


def _augment(job: Job, training: Training, data: DeviceData) -> Augment:
    return Augment.of(job.settings.data, data.image_size, training.knobs, len(data.class_names))


def _epoch(
    job: Job, training: Training, data: DeviceData, epoch: int, between_steps: BetweenSteps
) -> tuple[EpochReport, Evaluation]:
    started = time.perf_counter()
    recipe = job.settings.recipe
    train_loss, rate, paused = _train_epoch(job, training, data, epoch, between_steps)
    evaluation, waited = evaluate(training.scored, data, "val", epoch, recipe.batch_size, between_steps)
    paused += waited
    report = EpochReport(
        job=job.id,
        attempt=job.attempt,
        lease=job.lease,
        epoch=epoch,
        train_loss=train_loss,
        val_loss=evaluation.loss,
        accuracy=evaluation.accuracy,
        accuracy_low=evaluation.accuracy_low,
        accuracy_high=evaluation.accuracy_high,
        learning_rate=rate,
        seconds=max(0.0, time.perf_counter() - started - paused),
        pause_seconds=paused,
    )
    return report, evaluation


def _train_epoch(
    job: Job, training: Training, data: DeviceData, epoch: int, between_steps: BetweenSteps
) -> tuple[float, float, float]:
    """Mean loss over the epoch's images, rate of its last step, seconds that it paused."""
    recipe = job.settings.recipe
    torch.manual_seed(seed_of(recipe.seed, job.candidate, epoch, "dropout"))
    knobs = training.knobs
    augment = _augment(job, training, data)
    batch_seed = seed_of(recipe.seed, job.candidate, epoch, "batches")
    watch = LossWatch(data.device)
    total = torch.zeros((), device=data.device)
    paused, rate = 0.0, training.learning_rate
    training.begin_epoch()
    if training.distillation is not None:
        training.distillation.start_epoch(data, recipe.batch_size, batch_seed)
    batches = training_batches(data, recipe.batch_size, augment, batch_seed)
    left = batches_per_epoch(len(data.splits["train"]), recipe.batch_size)
    while left:
        count = min(left, knobs.accumulation)
        left -= count
        rate = training.learning_rate
        step = backward(training, itertools.islice(batches, count), count, between_steps)
        watch.see(step.loss, step.norm, training.updates + 1, rate)
        training.optimizer.step()
        training.advance()
        total += step.loss_sum
        paused += step.paused
    watch.close()
    return total.item() / len(data.splits["train"]), rate, paused


class Step(NamedTuple):
    """Of one step, on the device: mean loss of its batches, gradient norm, and loss summed over its images. paused:
    seconds that were waited before its batches."""

    loss: Tensor
    norm: Tensor
    loss_sum: Tensor
    paused: float


def backward(training: Training, batches: Iterable[Batch], count: int, between_steps: BetweenSteps) -> Step:
    """The gradient of `count` batches, each of the same weight, left clipped."""
    knobs, device = training.knobs, training.parameters[0].device
    for parameter in training.parameters:
        parameter.grad = None
    mean, loss_sum, paused = torch.zeros((), device=device), torch.zeros((), device=device), 0.0
    for images, labels in batches:
        paused += between_steps()
        loss = loss_of(training, images, labels)
        (loss / count if count > 1 else loss).backward()
        mean += loss.detach() / count
        loss_sum += loss.detach() * len(labels)
    return Step(mean, _clip(training.parameters, knobs.clip_norm), loss_sum, paused)


def _clip(parameters: Sequence[nn.Parameter], limit: float) -> Tensor:
    """Scales gradients to a common norm of `limit` at most, 0 for none; returns the norm that they had.

    The bits of torch.nn.utils.clip_grad_norm_, in half its time for a small network: that sorts them by device first.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    each: Any = torch._foreach_norm(gradients)  # pyright: ignore[reportPrivateImportUsage]
    norm = torch.linalg.vector_norm(torch.stack(each))
    if limit:
        coefficient = torch.clamp(limit / (norm + 1e-6), max=1.0)
        torch._foreach_mul_(gradients, coefficient)  # pyright: ignore[reportPrivateImportUsage]
    return norm


def loss_of(training: Training, images: Tensor, labels: Tensor) -> Tensor:
    """Mean over a batch: of the labels, and of the teacher where there is one."""

    def of_labels(scores: Tensor) -> Tensor:
        smoothing = training.knobs.label_smoothing
        return functional.cross_entropy(scores, labels, training.class_weights, label_smoothing=smoothing)

    scores = training.scores(images)
    if training.distillation is None:
        return of_labels(scores)
    return training.distillation.loss(scores, images, of_labels)


class LossWatch:
    """Notices a loss or gradient that is not finite within a step, without holding the device up.

    On a CPU a step is judged before its weights change. On a GPU the two numbers are copied while the device works
    on, and judged when the next step has been sent.
    """

    def __init__(self, device: torch.device) -> None:
        self._is_cuda = device.type == "cuda"
        self._pending: tuple[Tensor, torch.cuda.Event, int, float] | None = None

    def see(self, loss: Tensor, norm: Tensor, step: int, rate: float) -> None:
        """Raises CandidateError naming step, learning rate and gradient norm."""
        if not self._is_cuda:
            _judge(loss.item(), norm.item(), step, rate)
            return
        self.close()
        numbers = torch.stack([loss, norm]).to("cpu", non_blocking=True)
        copied = torch.cuda.Event()
        copied.record()
        self._pending = (numbers, copied, step, rate)

    def close(self) -> None:
        """Judges what has not been judged yet."""
        if self._pending is not None:
            numbers, copied, step, rate = self._pending
            self._pending = None
            copied.synchronize()
            loss, norm = numbers.tolist()
            _judge(loss, norm, step, rate)


def _judge(loss: float, norm: float, step: int, rate: float) -> None:
    if math.isfinite(loss) and math.isfinite(norm):
        return
    told = {"loss": f"loss {loss:g}", "norm": f"gradient norm {norm:g}"}
    first = told.pop("norm" if math.isfinite(loss) else "loss")
    raise CandidateError(
        f"{first} at step {step} is not finite (learning rate {rate:.3g}, {', '.join(told.values())})"
    )


def _check_fit(job: Job, data: DeviceData) -> None:
    for name, value in (("in_chans", data.channels), ("num_classes", len(data.class_names))):
        if job.spec.args.get(name, value) != value:
            raise CandidateError(f"the images need {name}={value}, but the network has {job.spec.args[name]}")


def _notes(job: Job, training: Training) -> dict[str, Any]:
    notes: dict[str, Any] = {}
    if training.knobs.stochastic_depth and not training.stochastic_depth:
        notes["stochastic_depth"] = f"{job.spec.model} has no drop paths; trained without"
    if training.distillation is not None:
        notes["teacher"] = training.distillation.note
    if training.loaded is not None:
        notes["weights"] = training.loaded
    return notes
