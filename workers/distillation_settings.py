"""Settings of distillation: stdlib dataclasses, as those in `workers.settings`, which has them as `distillation`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from workers.settings import RecipeSettings

SOFT_TEMPERATURE = 3.0
"""Where none is given; DeiT's for soft distillation (Touvron et al., arXiv:2012.12877, section 5)."""

_STRICT: dict[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True)
class TeacherSettings:
    """The network whose answers candidates learn from; one of three.

    weights: pretrained weights, named as timm does, or the stem of a file in `weights_dir`; fine-tuned on the images
        first. checkpoint: a checkpoint file of ours, of a network trained on the same images and splits.
    train: a network to be trained from fresh weights: an architecture of timm, or `resnet`, the scaled baseline.
    epochs: of its training; None takes those of the candidates.
    """

    weights: str | None = None
    checkpoint: str | None = None
    train: str | None = None
    epochs: int | None = None
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    def __post_init__(self) -> None:
        given = [name for name in ("weights", "checkpoint", "train") if getattr(self, name) is not None]
        if len(given) != 1:
            number = "none" if not given else " and ".join(given)
            raise ValueError(f"needs one of weights, checkpoint and train, not {number}")
        if not getattr(self, given[0]):
            raise ValueError(f"{given[0]}: is empty; name the teacher")
        if self.epochs is not None:
            if self.checkpoint is not None:
                raise ValueError("epochs: a checkpoint is not trained any more; remove this")
            if not 1 <= self.epochs <= 100_000:
                raise ValueError(f"epochs: {self.epochs} is outside 1 to 100000")


@dataclass(frozen=True)
class DistillationSettings:
    """What candidates learn from a teacher, beside the labels.

    kind: `soft` (its probabilities), `hard` (the class that it names), or `token` (that class, by a classifier of the
        network's own for it).
    alpha: the teacher's share of the loss; the labels have the rest.
    temperature: of `soft`, by which both networks' scores are divided; None for 3.
    """

    teacher: TeacherSettings
    kind: Literal["soft", "hard", "token"] = "soft"
    alpha: float = 0.5
    temperature: float | None = None
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    def __post_init__(self) -> None:
        if not 0.01 <= self.alpha <= 1:
            raise ValueError(f"alpha: {self.alpha} is outside 0.01 to 1")
        if self.temperature is None:
            return
        if self.kind != "soft":
            raise ValueError(f"temperature: is of kind soft alone, not of {self.kind}; remove it")
        if not (math.isfinite(self.temperature) and 0.1 <= self.temperature <= 100):
            raise ValueError(f"temperature: {self.temperature} is outside 0.1 to 100")

    @property
    def heat(self) -> float:
        """The temperature that is used."""
        return SOFT_TEMPERATURE if self.temperature is None else self.temperature

    def of_teacher(self, recipe: RecipeSettings) -> RecipeSettings:
        """How the teacher itself is trained: as `recipe` says, but from its pretrained weights where it has some, and
        from fresh ones where it has none."""
        epochs = self.teacher.epochs or recipe.epochs
        changes: dict[str, Any] = {"distillation": None, "epochs": epochs}
        if (self.teacher.weights is None) == (recipe.recipe == "finetune"):
            changes["recipe"] = "auto"
        if recipe.warmup_epochs is not None:
            changes["warmup_epochs"] = min(recipe.warmup_epochs, epochs)
        return replace(recipe, **changes)


def of_dict(values: dict[str, Any] | None) -> DistillationSettings | None:
    """What `dataclasses.asdict` made of the settings."""
    if values is None:
        return None
    return DistillationSettings(**{**values, "teacher": TeacherSettings(**values["teacher"])})
