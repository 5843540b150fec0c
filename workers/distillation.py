"""Learning from a teacher's answers beside the labels.

The losses are those of Hinton et al. (arXiv:1503.02531) and of DeiT (Touvron et al., arXiv:2012.12877); timm.task has
the same, but brings images to the normalisation that timm's models were published with, which ours do not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import spaces.models
from workers import checkpoint
from workers.data.batches import DeviceData, dealt, evaluation_batches
from workers.data.resizing import resized
from workers.distillation_settings import DistillationSettings
from workers.errors import CheckpointError, TeacherError
from workers.job import Job, TeacherRef

MOST_CACHED = 512 * 2**20
"""Bytes that the answers to all training images may take on the device."""
_BATCH = 256

LabelLoss = Callable[[Tensor], Tensor]
"""A network's scores of a batch, [b, classes] -> their loss against the labels of the batch."""


def mixed(scores: Any, answers: Tensor, settings: DistillationSettings, label_loss: LabelLoss) -> Tensor:
    """The loss of a batch: (1 - alpha) of the labels' and alpha of the teacher's.

    scores: [b, classes]; of kind `token` two of these, the class head's and the distillation head's. answers: of the
    teacher, as `answers_of` gives them.
    """
    learns_labels, learns_answers = scores if settings.kind == "token" else (scores, scores)
    if settings.kind == "soft":
        of_teacher = soft_loss(learns_answers, answers, settings.heat)
    else:
        of_teacher = functional.cross_entropy(learns_answers, answers)
    return (1 - settings.alpha) * label_loss(learns_labels) + settings.alpha * of_teacher


def soft_loss(scores: Tensor, answers: Tensor, temperature: float) -> Tensor:
    """Divergence of a network's probabilities from its teacher's, both from scores [b, classes] divided by the
    temperature, whose square brings the gradients back to their size."""
    ours = functional.log_softmax(scores / temperature, dim=1)
    theirs = functional.log_softmax(answers / temperature, dim=1)
    return functional.kl_div(ours, theirs, reduction="batchmean", log_target=True) * temperature**2


def answers_of(scores: Tensor, kind: str) -> Tensor:
    """What is learnt of a teacher's scores [b, classes]: these, or of kinds `hard` and `token` the classes, [b]."""
    return scores if kind == "soft" else scores.argmax(1)


@dataclass
class Distillation:
    """One training's teacher. network: in evaluation mode. image_size: side of the images that it takes.

    cached: its answers to all training images, in their order, where no image is changed; else it is asked about every
    batch as the student sees it.
    """

    settings: DistillationSettings
    name: str
    network: nn.Module
    image_size: int
    cached: Tensor | None
    why_not_cached: str = ""
    _chosen: Iterator[Tensor] = field(default_factory=lambda: iter(()))

    def start_epoch(self, data: DeviceData, batch_size: int, seed: int) -> None:
        """Before the batches that `training_batches` gives for the same arguments."""
        self._chosen = iter(dealt(data, batch_size, seed))

    def loss(self, scores: Any, images: Tensor, label_loss: LabelLoss) -> Tensor:
        """Of the next batch. images: as the student saw them. scores: what it made of them."""
        if self.cached is not None:
            answers = self.cached[next(self._chosen)]
        else:
            answers = answers_of(self._ask(images), self.settings.kind)
        return mixed(scores, answers, self.settings, label_loss)

    @property
    def note(self) -> str:
        """In a line, for the Outcome."""
        if self.cached is None:
            return f"learns from {self.name}, which is asked about every batch ({self.why_not_cached})"
        size = self.cached.numel() * self.cached.element_size() / 2**20
        what = "scores of" if self.settings.kind == "soft" else "classes of"
        return (
            f"learns from {self.name}, whose {what} all {len(self.cached):,} training images are kept on the device: "
            f"{size:.2f} MB"
        )

    @torch.no_grad()
    def _ask(self, images: Tensor) -> Tensor:
        return self.network(resized(images, self.image_size))


def begin(
    job: Job, student: nn.Module, data: DeviceData, is_changed: bool, between_steps: Callable[[], float]
) -> Distillation | None:
    """The teacher of a job; None where it has none. A student of kind `token` gives both heads' scores from now on.

    is_changed: whether training changes images. Raises TeacherError where the teacher's checkpoint cannot be used.
    """
    settings, ref = job.settings.recipe.distillation, job.teacher
    if settings is None or ref is None:
        return None
    if settings.kind == "token":
        give_both: Any = getattr(student, "set_distilled_training")  # noqa: B009
        give_both(True)
    network = _teacher(job.artifacts, ref, data)
    why_not = "they are changed at random" if is_changed else _too_large(data, settings.kind)
    cached = None if why_not else _all_answers(network, ref, data, settings.kind, between_steps)
    return Distillation(settings, ref.name, network, ref.spec.image_size, cached, why_not)


def _teacher(artifacts: str, ref: TeacherRef, data: DeviceData) -> nn.Module:
    network = spaces.models.build(ref.spec).to(data.device)
    try:
        metadata = checkpoint.load_scored(artifacts, ref.checkpoint, network)
    except CheckpointError as error:
        raise TeacherError(f"teacher {ref.name}: {error}") from error
    if metadata.get("data") != data.digest:
        raise TeacherError(f"teacher {ref.name}: was trained on other images than these")
    return network.eval().requires_grad_(False)


def _too_large(data: DeviceData, kind: str) -> str:
    """Why the answers are not kept; empty where they may be."""
    numbers = 4 * len(data.class_names) if kind == "soft" else 8
    num_bytes = numbers * len(data.splits["train"])
    if num_bytes <= MOST_CACHED:
        return ""
    return f"its answers would take {num_bytes / 2**20:,.0f} MB, over {MOST_CACHED // 2**20} MB"


_held: dict[tuple[Any, ...], Tensor] = {}


@torch.no_grad()
def _all_answers(
    network: nn.Module, ref: TeacherRef, data: DeviceData, kind: str, between_steps: Callable[[], float]
) -> Tensor:
    """Of all training images; those of the last call again where teacher, images and kind are the same."""
    key = (ref.checkpoint.sha256, data.digest, str(data.device), kind)
    if key not in _held:
        _held.clear()
        found: list[Tensor] = []
        for images, _ in evaluation_batches(data.at(ref.spec.image_size), "train", _BATCH):
            between_steps()
            found.append(answers_of(network(images), kind))
        _held[key] = torch.cat(found)
    return _held[key]
