"""How a new search trains: what recipe `auto` comes to, and which settings of training nothing in it would use.

A search that began with an idle setting is not refused: nothing would be gained.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection
from dataclasses import replace

from search.config import SearchConfig
from search.plan import Plan
from spaces import zoo
from spaces.spec import ArchSpec
from workers.counting import counted
from workers.knobs import Knobs, fresh_recipe, knobs_of
from workers.settings import FINE_TUNING

_DRAWS = 200


def decided(config: SearchConfig) -> SearchConfig:
    """The same with `training.fresh_recipe` spelled out where recipe `auto` goes by it, so that a search keeps it."""
    training = config.training
    if training.recipe != "auto" or training.fresh_recipe != "auto":
        return config
    return config.model_copy(update={"training": replace(training, fresh_recipe=fresh_recipe(training))})


def check(plan: Plan) -> None:
    """Raises UsageError naming a setting of training that no network of a new search would use, or that one cannot."""
    fine_tuned, fresh = _kinds(plan)
    _check_rates(plan, fine_tuned, fresh)
    for fine_tunes in {True} if not fresh else {False} if not fine_tuned else {True, False}:
        _check_knobs(plan, knobs_of(plan.config.training, fine_tunes))
    _check_folder(plan)
    _check_loss(plan)
    _check_shift(plan)
    _check_networks(plan)


def line(plan: Plan) -> str:
    """Which recipes will train, for whoever runs `validate`."""
    fine_tuned, fresh = _kinds(plan)
    training = plan.config.training
    name = fresh_recipe(training) if training.recipe == "auto" else training.recipe
    inherited = sorted(training.inherit or ())
    tuned = fine_tuned and any(_whole(plan))
    text = " and ".join([name] * (fresh and name != "finetune") + ["finetune"] * tuned)
    told = f"for {' and '.join(inherited)} inherit" if inherited else ""
    return ", and ".join(part for part in (text, told) if part)


def _kinds(plan: Plan) -> tuple[bool, bool]:
    """Whether some network is fine-tuned, and whether some is trained from fresh weights."""
    training = plan.config.training
    weights = [*_whole(plan, but=training.inherit or {}), *[True for _ in training.inherit or {}]]
    fine_tuned = any(weights) and not training.begins_fresh
    return fine_tuned, training.begins_fresh or not all(weights)


def _whole(plan: Plan, but: Collection[str] = ()) -> list[bool]:
    """Of each baseline, each family but some, and a teacher that is trained: whether it has pretrained weights."""
    found = [spec.weights is not None for spec in plan.baselines.values()]
    found += [family == zoo.Zoo.name for family in plan.space.families if family not in but]
    if plan.teacher is not None and plan.teacher.epochs:
        found.append(plan.teacher.spec.weights is not None)
    return found


def _check_rates(plan: Plan, fine_tuned: bool, fresh: bool) -> None:
    config, training = plan.config, plan.config.training
    if training.recipe != "auto" and training.fresh_recipe != "auto":
        raise config.error(
            "training.fresh_recipe", "only recipe auto goes by it; remove it, or set recipe: auto"
        )
    given = [name for name in FINE_TUNING if getattr(training, name) is not None]
    if given and not fine_tuned:
        why = f"recipe {training.recipe} " if training.begins_fresh else ""
        why += "begins from fresh weights" if why else "nothing here begins from pretrained weights"
        raise config.error(f"training.{given[0]}", f"is used in fine-tuning only, and {why}; remove it")
    if training.frozen_epochs and training.backbone_rate == 0:
        text = "backbone_rate 0 freezes the layers below the classifier in all epochs; remove one of the two"
        raise config.error("training.frozen_epochs", text)
    if training.layer_decay is not None and training.backbone_rate == 0:
        text = "backbone_rate 0 freezes the layers that it would tell apart; remove one of the two"
        raise config.error("training.layer_decay", text)
    if training.learning_rate is not None and not fresh:
        text = "everything here begins from pretrained weights, which go by head_rate; set that instead"
        raise config.error("training.learning_rate", text)


def _check_knobs(plan: Plan, knobs: Knobs) -> None:
    config, training = plan.config, plan.config.training
    if training.rand_augment_magnitude == 0 and knobs.rand_augment_ops:
        drawn = counted(knobs.rand_augment_ops, "operation")
        text = f"{drawn} of no strength an image; give rand_augment_ops: 0 for none"
        raise config.error("training.rand_augment_magnitude", text)
    if training.rand_augment_magnitude and not knobs.rand_augment_ops:
        text = "does nothing where no operations are drawn; give rand_augment_ops, such as 2"
        raise config.error("training.rand_augment_magnitude", text)
    if training.rand_augment_ops and not knobs.rand_augment_magnitude:
        text = "operations of no strength; give rand_augment_magnitude, such as 9"
        raise config.error("training.rand_augment_ops", text)
    images = plan.data.num_images["train"]
    batches = max(1, -(-images // training.batch_size))
    if knobs.accumulation > batches:
        there = counted(batches, "batch", "batches")
        text = f"{knobs.accumulation} is more than the {there} of an epoch; lower it, or batch_size"
        raise config.error("training.accumulation", text)


def _check_loss(plan: Plan) -> None:
    """Where labels have no share of the loss, what is said of their loss is idle."""
    config, training, teacher = plan.config, plan.config.training, plan.teacher
    distillation = training.distillation
    if distillation is None or distillation.alpha < 1:
        return
    key = "training.distillation.alpha"
    if distillation.kind == "token":
        text = (
            "the classifier of the class token would learn nothing, and half of every answer is its; lower it"
        )
        raise config.error(key, f"1: {text}")
    learn_labels = teacher is not None and teacher.epochs > 0
    if training.label_smoothing is not None and not learn_labels:
        raise config.error(
            "training.label_smoothing", f"{key} 1 leaves labels no share of the loss; remove it"
        )
    if config.data.balance == "loss" and not learn_labels:
        raise config.error("data.balance", f"loss: {key} 1 leaves labels no share of the loss; use sampler")


def _check_shift(plan: Plan) -> None:
    shift = plan.config.training.max_shift
    if not shift:
        return
    side = max(spec.image_size for spec in _networks(plan))
    if int(shift * side) == 0:
        least = math.ceil(1000 / side) / 1000
        text = f"{shift:g} of {side} px is less than a pixel, which moves nothing; give {least:g} or more"
        raise plan.config.error("training.max_shift", text)


def _check_folder(plan: Plan) -> None:
    training, teacher = plan.config.training, plan.teacher
    learns_from_weights = teacher is not None and teacher.spec.weights is not None
    if training.weights_dir is not None and training.begins_fresh and not learns_from_weights:
        text = f"recipe {training.recipe} begins from fresh weights; remove it, or use auto"
        raise plan.config.error("training.weights_dir", text)


def _check_networks(plan: Plan) -> None:
    """Tries dropout and stochastic depth that are asked for on one network of each kind."""
    training = plan.config.training
    asked = {"dropout": "drop_rate", "stochastic_depth": "drop_path_rate"}
    for name, argument in asked.items():
        rate = getattr(training, name)
        for spec in _networks(plan) if rate else ():
            if not _takes(spec, argument, rate):
                text = f"{spec.model} has none; remove it, or leave that network out"
                raise plan.config.error(f"training.{name}", text)


def _networks(plan: Plan) -> Collection[ArchSpec]:
    """One of each entry point that the search may train."""
    rng = random.Random(plan.config.search.seed)
    drawn = [plan.space.spec(plan.space.sample(rng)) for _ in range(_DRAWS)]
    taught = [plan.teacher.spec] if plan.teacher is not None and plan.teacher.epochs else []
    return {spec.model: spec for spec in (*drawn, *plan.baselines.values(), *taught)}.values()


def _takes(spec: ArchSpec, argument: str, rate: float) -> bool:
    from spaces import models
    from workers.plugins import load_plugins

    load_plugins()
    try:
        models.build_shapes(replace(spec, args={**spec.args, argument: rate}))
    except TypeError as error:
        if argument not in str(error):
            raise
        return False
    return True
