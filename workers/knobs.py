"""What a recipe means: every knob of a training spelled out, from the recipe's defaults and what is set.

`docs/training.md` has the sources and the measurements behind the defaults.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace

from workers.settings import RecipeSettings

WARMUP_SHARE = 0.1
"""Of the epochs, for all recipes but `custom`."""

DEIT_EPOCHS = math.inf
"""Epochs from which `auto` trains fresh weights by `deit`: none of those that were measured (docs/training.md)."""

LION_RATE, LION_DECAY = 0.3, 3.0
"""Lion's default rate and weight decay as multiples of AdamW's. arXiv 2302.06675 advises rates 3 to 10 times smaller
and decays as much larger (section 5); a tenth is too little for schedules of hundreds of steps."""


@dataclass(frozen=True)
class Knobs:
    """Of one training. The fields are described at `workers.settings.RecipeSettings`, where they may be unset.

    learning_rate: of the classifier, in fine-tuning. What is turned off is 0.
    """

    optimizer: str
    schedule: str
    learning_rate: float
    weight_decay: float
    warmup_epochs: float
    label_smoothing: float
    stochastic_depth: float
    dropout: float
    ema_decay: float
    clip_norm: float
    accumulation: int
    max_shift: float
    mixup: float
    cutmix: float
    erasing: float
    rand_augment_magnitude: float
    rand_augment_ops: int
    repeated_augmentation: int
    backbone_rate: float = 1.0
    layer_decay: float = 1.0
    frozen_epochs: float = 0.0


OFF = Knobs(
    optimizer="adamw",
    schedule="cosine",
    learning_rate=math.nan,  # `custom` cannot be without one
    weight_decay=0.0,
    warmup_epochs=0.0,
    label_smoothing=0.0,
    stochastic_depth=0.0,
    dropout=0.0,
    ema_decay=0.0,
    clip_norm=0.0,
    accumulation=1,
    max_shift=0.0,
    mixup=0.0,
    cutmix=0.0,
    erasing=0.0,
    rand_augment_magnitude=0.0,
    rand_augment_ops=0,
    repeated_augmentation=1,
)
PLAIN = replace(
    OFF,
    learning_rate=4e-3,
    weight_decay=0.05,
    label_smoothing=0.1,
    stochastic_depth=0.05,
    ema_decay=0.98,
    clip_norm=1.0,
    max_shift=0.1,
)
DEFAULTS = {
    "plain": PLAIN,
    "finetune": replace(PLAIN, learning_rate=5e-3, backbone_rate=0.2, layer_decay=0.75),
    "inherit": replace(PLAIN, learning_rate=5e-3),
    "deit": replace(
        PLAIN,
        stochastic_depth=0.1,
        mixup=0.8,
        cutmix=1.0,
        erasing=0.25,
        rand_augment_magnitude=9.0,
        rand_augment_ops=2,
        repeated_augmentation=3,
    ),
    "custom": OFF,
}
"""Recipe -> its knobs; warm-up is a share of the epochs, see `knobs_of`."""


def recipe_of(settings: RecipeSettings, fine_tunes: bool, inherits: bool = False) -> str:
    """The recipe of one training, a key of DEFAULTS: what `auto` comes to. inherits: begins from parts of weights."""
    if fine_tunes and inherits:
        return "inherit"
    if settings.recipe != "auto":
        return settings.recipe
    return "finetune" if fine_tunes else fresh_recipe(settings)


def fresh_recipe(settings: RecipeSettings) -> str:
    """What `auto` comes to for fresh weights: by `fresh_recipe`, else by the number of epochs."""
    if settings.fresh_recipe != "auto":
        return settings.fresh_recipe
    return "deit" if settings.epochs >= DEIT_EPOCHS else "plain"


def knobs_of(settings: RecipeSettings, fine_tunes: bool, inherits: bool = False) -> Knobs:
    """What is set, and else the recipe's defaults; those of rate and weight decay follow the optimizer."""
    name = recipe_of(settings, fine_tunes, inherits)
    defaults = DEFAULTS[name]
    if name != "custom":
        defaults = replace(defaults, warmup_epochs=settings.epochs * WARMUP_SHARE)
    given = {key: value for key, value in asdict(settings).items() if key in _NAMES and value is not None}
    if fine_tunes:
        given.pop("learning_rate", None)
        given |= {} if settings.head_rate is None else {"learning_rate": settings.head_rate}
    if settings.optimizer == "lion":
        defaults = replace(
            defaults,
            learning_rate=defaults.learning_rate * LION_RATE,
            weight_decay=defaults.weight_decay * LION_DECAY,
        )
    found = replace(defaults, **given)
    return found if fine_tunes else replace(found, backbone_rate=1.0, layer_decay=1.0, frozen_epochs=0.0)


_NAMES = {field.name for field in fields(Knobs)}
