"""The recipes: a network, its optimizer, schedule and averaged weights, composed from timm's parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from timm.optim import create_optimizer_v2  # pyright: ignore[reportPrivateImportUsage]
from timm.scheduler.cosine_lr import CosineLRScheduler
from timm.utils.model_ema import ModelEmaV3
from torch import nn

import spaces.models
from spaces.spec import ArchSpec
from workers import finetuning, pretrained
from workers.errors import CandidateError
from workers.settings import RecipeSettings

CLIP_NORM = 1.0
"""Largest gradient norm of a step, as for the small ViTs of "Better plain ViT baselines" (arXiv 2205.01580)."""

RATE_BATCH = 256
"""Batch size that `learning_rate` and `head_rate` are meant for."""

POSITION_STD = 0.5
"""Deviation of fresh position embeddings; patch embeddings of normalised images start near 0.6."""

EDGE_RATE = 0.01
"""Share of the peak rate that warm-up starts from and the cosine ends at."""


@dataclass
class Training:
    """What changes while a candidate is trained. updates: optimizer steps done, the position in the schedule.

    stochastic_depth: False where the network does not know drop paths. loaded: the pretrained weights that it began
    from, as `pretrained.Loaded` says it, where there are any.
    """

    model: nn.Module
    ema: ModelEmaV3 | None
    optimizer: torch.optim.Optimizer
    schedule: CosineLRScheduler
    stochastic_depth: bool
    loaded: dict[str, Any] | None = None
    updates: int = 0

    @property
    def scored(self) -> nn.Module:
        """The network that is validated and deployed: the averaged weights where there are any."""
        return self.model if self.ema is None else self.ema.module

    @property
    def learning_rate(self) -> float:
        """The largest that any parameter has: the classifier's, in fine-tuning."""
        return max(group["lr"] for group in self.optimizer.param_groups)

    def seek(self, updates: int) -> None:
        """Moves the schedule to the position after `updates` steps."""
        self.updates = updates
        self.schedule.step_update(updates)

    def advance(self) -> None:
        """After an optimizer step: averages the weights and moves the schedule by one."""
        self.updates += 1
        if self.ema is not None:
            self.ema.update(self.model, step=self.updates)
        self.schedule.step_update(self.updates)


def compose(
    spec: ArchSpec,
    recipe: RecipeSettings,
    steps_per_epoch: int,
    seed: int,
    device: torch.device,
    weights: Path | None = None,
) -> Training:
    """A network at the start of the whole schedule of `recipe.epochs`, its fresh weights drawn from `seed`.

    weights: the file of spec.weights; None leaves everything fresh, for a checkpoint to fill.
    AdamW spares norms and biases from weight decay. The average's decay rises to `ema_decay` with the updates
    (timm's warm-up), so that short rungs are scored on trained weights too. Raises CandidateError where the recipe
    needs weights that the spec does not name, and what `pretrained.load` raises.
    """
    fine_tunes = is_fine_tuned(spec, recipe)
    torch.manual_seed(seed)
    model, stochastic_depth = _build(spec, recipe.stochastic_depth)
    if not fine_tunes:
        _draw_weights(model)
    loaded = pretrained.load(model, spec, weights).to_dict() if weights is not None else None
    model.to(device).train()
    optimizer = _optimizer(model, recipe, fine_tunes)
    ema = ModelEmaV3(model, decay=recipe.ema_decay, use_warmup=True) if recipe.ema_decay else None
    schedule = _schedule(optimizer, recipe, steps_per_epoch)
    training = Training(model, ema, optimizer, schedule, stochastic_depth, loaded)
    training.seek(0)
    return training


def is_fine_tuned(spec: ArchSpec, recipe: RecipeSettings) -> bool:
    """Whether the recipe begins from the spec's pretrained weights. Raises CandidateError where it needs some."""
    try:
        return recipe.fine_tunes(spec.weights)
    except ValueError as error:
        raise CandidateError(f"{spec.model}: {error}") from None


def seed_of(*parts: int | str) -> int:
    """A seed for what `parts` name, such as (recipe.seed, candidate, epoch, "batches"); below 2**63."""
    text = "/".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _optimizer(model: nn.Module, recipe: RecipeSettings, fine_tunes: bool) -> torch.optim.Optimizer:
    rate = recipe.head_rate if fine_tunes else recipe.learning_rate
    return create_optimizer_v2(
        model,
        opt="adamw",
        lr=rate * recipe.batch_size / RATE_BATCH,
        weight_decay=recipe.weight_decay,
        param_group_fn=partial(finetuning.parameter_groups, recipe=recipe) if fine_tunes else None,
        fused=True,
    )


def _schedule(
    optimizer: torch.optim.Optimizer, recipe: RecipeSettings, steps_per_epoch: int
) -> CosineLRScheduler:
    total = recipe.epochs * steps_per_epoch
    warmup_epochs = recipe.epochs / 10 if recipe.warmup_epochs is None else recipe.warmup_epochs
    warmup = round(warmup_epochs * steps_per_epoch)
    peak = optimizer.param_groups[0]["lr"]
    return CosineLRScheduler(
        optimizer,
        t_initial=max(2, total - warmup),
        lr_min=peak * EDGE_RATE,
        warmup_t=warmup,
        warmup_lr_init=peak * EDGE_RATE,
        warmup_prefix=True,
        t_in_epochs=False,
    )


def _draw_weights(model: nn.Module) -> None:
    """Xavier's rule for the linear layers, as in the original ViT (arXiv 2010.11929), and position embeddings as
    large as the tokens that they are added to.

    timm's deviation of 0.02 suits long schedules of wide networks. On a short one, positions of narrow networks stay
    invisible: digits in 18 epochs came to 0.90 with it and to 0.98 with this. The classifier is left as it is.
    """
    classifier = finetuning.classifier_parameters(model)
    for module in model.modules():
        if isinstance(module, nn.Linear) and id(module.weight) not in classifier:
            nn.init.xavier_uniform_(module.weight)
    for name, parameter in model.named_parameters():
        if name.rpartition(".")[2] == "pos_embed":
            nn.init.normal_(parameter, std=POSITION_STD)


def _build(spec: ArchSpec, stochastic_depth: float) -> tuple[nn.Module, bool]:
    if stochastic_depth > 0:
        try:
            return spaces.models.build(spec, stochastic_depth=stochastic_depth), True
        except TypeError as error:
            if "drop_path_rate" not in str(error):
                raise
    return spaces.models.build(spec), False
