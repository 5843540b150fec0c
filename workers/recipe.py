"""The recipes: a network, its optimizer, schedule and averaged weights, composed from timm's parts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from timm.optim import create_optimizer_v2  # pyright: ignore[reportPrivateImportUsage]
from timm.scheduler.cosine_lr import CosineLRScheduler
from timm.scheduler.scheduler import Scheduler
from timm.scheduler.wsd_lr import WSDLRScheduler
from torch import nn

import spaces.models
from spaces.spec import ArchSpec
from workers import finetuning, inheritance, pretrained
from workers.averaging import Average
from workers.errors import CandidateError
from workers.knobs import Knobs, knobs_of
from workers.settings import RecipeSettings

if TYPE_CHECKING:
    from workers.distillation import Distillation

RATE_BATCH = 256
"""Images a step that `learning_rate` and `head_rate` are meant for."""

POSITION_STD = 0.5
"""Deviation of fresh position embeddings; patch embeddings of normalised images start near 0.6."""

EDGE_RATE = 0.01
"""Share of the peak rate that warm-up starts from and the schedule ends at."""

DECAY_SHARE = 0.2
"""Of the steps after warm-up, in which the rate of `wsd` decays (arXiv 2405.18392, section 3.2)."""


@dataclass
class Training:
    """What changes while a candidate is trained. updates: optimizer steps done, the position in the schedule.

    knobs: how it is trained. stochastic_depth: False where the network does not know drop paths. loaded: the
    pretrained weights that it began from, as `pretrained.Loaded` or `inheritance.Inherited` says it, where there are
    any. distillation: the teacher, where there is one. frozen_updates: first steps, in which what came from pretrained
    weights is frozen. network: the model as steps call it, where that is not as it is (`executing.execute`).
    """

    model: nn.Module
    ema: Average | None
    optimizer: torch.optim.Optimizer
    schedule: Scheduler
    knobs: Knobs
    stochastic_depth: bool
    loaded: dict[str, Any] | None = None
    class_weights: torch.Tensor | None = None
    distillation: Distillation | None = None
    updates: int = 0
    frozen_updates: int = 0
    network: Callable[[torch.Tensor], Any] | None = None

    def scores(self, images: torch.Tensor) -> Any:
        """What a step makes of images [b, channels, side, side]."""
        return self.model(images) if self.network is None else self.network(images)

    @property
    def scored(self) -> nn.Module:
        """The network that is validated and deployed: the averaged weights where there are any."""
        return self.model if self.ema is None else self.ema.module

    @cached_property
    def parameters(self) -> list[nn.Parameter]:
        """Of the network, in its order: walking through its modules takes as long as a small one's optimizer."""
        return list(self.model.parameters())

    @property
    def is_frozen(self) -> bool:
        """Whether only what did not come from pretrained weights learns in the next step."""
        return self.updates < self.frozen_updates

    @property
    def learning_rate(self) -> float:
        """The largest that any parameter has: the classifier's, in fine-tuning."""
        return max(group["lr"] for group in self.optimizer.param_groups)

    def seek(self, updates: int) -> None:
        """Moves the schedule to the position after `updates` steps."""
        self.updates = updates
        self.schedule.step_update(updates)
        if self.frozen_updates:
            finetuning.freeze(self.model, self.optimizer, self.loaded, self.is_frozen)

    def begin_epoch(self) -> None:
        """Puts the network into training mode, but for what is frozen."""
        self.model.train()
        if self.is_frozen:
            finetuning.freeze(self.model, self.optimizer, self.loaded, True)

    def advance(self) -> None:
        """After an optimizer step: averages the weights and moves the schedule by one."""
        self.updates += 1
        if self.ema is not None:
            self.ema.update(self.model, step=self.updates)
        self.schedule.step_update(self.updates)
        if self.updates == self.frozen_updates:
            finetuning.freeze(self.model, self.optimizer, self.loaded, False)


def compose(
    spec: ArchSpec,
    recipe: RecipeSettings,
    batches_per_epoch: int,
    seed: int,
    device: torch.device,
    weights: Path | None = None,
    inherit: str | None = None,
) -> Training:
    """A network at the start of the whole schedule of `recipe.epochs`, its fresh weights drawn from `seed`.

    weights: the file of spec.weights, or of those named by `inherit`, of which it begins from parts; None leaves
    everything fresh, for a checkpoint to fill.
    Norms and biases are spared from weight decay. The average's decay rises to `ema_decay` with the updates
    (timm's warm-up), so that short rungs are scored on trained weights too. Raises CandidateError where the recipe
    needs weights that the spec does not name, or where the network has no dropout and the recipe some, and what
    `pretrained.load` and `inheritance.inherit` raise.
    """
    fine_tunes = is_fine_tuned(spec, recipe, inherit)
    knobs = knobs_of(recipe, fine_tunes, inherit is not None)
    torch.manual_seed(seed)
    model, stochastic_depth = _build(spec, knobs)
    if not fine_tunes or inherit is not None:
        _draw_weights(model)
    loaded = _begun(model, spec, weights, inherit)
    model.to(device).train()
    optimizer = _optimizer(model, knobs, recipe.batch_size, fine_tunes)
    ema = Average(model, decay=knobs.ema_decay, use_warmup=True) if knobs.ema_decay else None
    steps_per_epoch = math.ceil(batches_per_epoch / knobs.accumulation)
    schedule = _schedule(optimizer, knobs, recipe.epochs, steps_per_epoch)
    training = Training(model, ema, optimizer, schedule, knobs, stochastic_depth, loaded)
    training.frozen_updates = round(knobs.frozen_epochs * steps_per_epoch)
    training.seek(0)
    return training


def _begun(
    model: nn.Module, spec: ArchSpec, weights: Path | None, inherit: str | None
) -> dict[str, Any] | None:
    if weights is None:
        return None
    if inherit is not None:
        return inheritance.inherit(model, spec, inherit, weights).to_dict()
    return pretrained.load(model, spec, weights).to_dict()


def is_fine_tuned(spec: ArchSpec, recipe: RecipeSettings, inherit: str | None = None) -> bool:
    """Whether the recipe begins from pretrained weights, the spec's or those that are inherited. Raises CandidateError
    where it needs some."""
    try:
        return recipe.fine_tunes(inherit or spec.weights)
    except ValueError as error:
        raise CandidateError(f"{spec.model}: {error}") from None


def seed_of(*parts: int | str) -> int:
    """A seed for what `parts` name, such as (recipe.seed, candidate, epoch, "batches"); below 2**63."""
    text = "/".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _optimizer(model: nn.Module, knobs: Knobs, batch_size: int, fine_tunes: bool) -> torch.optim.Optimizer:
    """Muon leaves vectors, position embeddings and the classifier to AdamW, at the same rate (arXiv 2502.16982)."""
    more: dict[str, Any] = {"adamw": {"fused": True}, "lion": {}, "muon": {}}[knobs.optimizer]
    if fine_tunes:
        more["param_group_fn"] = partial(finetuning.parameter_groups, knobs=knobs)
    elif knobs.optimizer == "muon":
        classifier = finetuning.classifier_parameters(model)
        of_adamw = [name for name, parameter in model.named_parameters() if id(parameter) in classifier]
        more |= {"fallback_list": of_adamw, "fallback_no_weight_decay": True}
    return create_optimizer_v2(
        model,
        opt=knobs.optimizer,
        lr=knobs.learning_rate * batch_size * knobs.accumulation / RATE_BATCH,
        weight_decay=knobs.weight_decay,
        **more,
    )


def _schedule(optimizer: torch.optim.Optimizer, knobs: Knobs, epochs: int, steps_per_epoch: int) -> Scheduler:
    warmup = round(knobs.warmup_epochs * steps_per_epoch)
    rest = max(2, epochs * steps_per_epoch - warmup)
    low = optimizer.param_groups[0]["lr"] * EDGE_RATE
    shared: dict[str, Any] = {
        "t_initial": rest,
        "lr_min": low,
        "warmup_t": warmup,
        "warmup_lr_init": low,
        "t_in_epochs": False,
    }
    if knobs.schedule == "wsd":
        return WSDLRScheduler(optimizer, decay_t=max(1, round(rest * DECAY_SHARE)), **shared)
    return CosineLRScheduler(optimizer, warmup_prefix=True, **shared)


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


def _build(spec: ArchSpec, knobs: Knobs) -> tuple[nn.Module, bool]:
    """The network, and whether it has drop paths where some are asked for."""
    spec = with_dropout(spec, knobs.dropout)
    try:
        if knobs.stochastic_depth > 0:
            try:
                return spaces.models.build(spec, stochastic_depth=knobs.stochastic_depth), True
            except TypeError as error:
                if "drop_path_rate" not in str(error):
                    raise
        return spaces.models.build(spec), False
    except TypeError as error:
        if not knobs.dropout or "drop_rate" not in str(error):
            raise
        raise CandidateError(f"{spec.model} has no dropout; leave training.dropout out") from None


def with_dropout(spec: ArchSpec, rate: float) -> ArchSpec:
    """The same network with dropout before its classifier, which timm calls `drop_rate`; to be trained, not stored."""
    return replace(spec, args={**spec.args, "drop_rate": rate}) if rate else spec
