from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from workers import knobs
from workers.knobs import DEFAULTS, Knobs, fresh_recipe, knobs_of, recipe_of
from workers.settings import RecipeSettings

CUSTOM: dict[str, Any] = {"recipe": "custom", "optimizer": "adamw", "schedule": "wsd", "learning_rate": 1e-3}
FIRST_VERSION: dict[str, Any] = {
    "recipe": "auto",
    "epochs": 27,
    "batch_size": 128,
    "learning_rate": 0.004,
    "weight_decay": 0.05,
    "warmup_epochs": None,
    "label_smoothing": 0.1,
    "stochastic_depth": 0.05,
    "ema_decay": 0.98,
    "max_shift": 0.1,
    "seed": 0,
}
LATER = FIRST_VERSION | {
    "weights_dir": None,
    "head_rate": 0.005,
    "backbone_rate": 0.2,
    "layer_decay": 0.75,
}


def of(fine_tunes: bool = False, **settings: Any) -> Knobs:
    return knobs_of(RecipeSettings(**settings), fine_tunes)


@pytest.mark.parametrize("stored", [FIRST_VERSION, LATER], ids=["first", "later"])
@pytest.mark.parametrize("fine_tunes", [False, True])
def test_settings_stored_by_older_versions_mean_what_they_meant(
    stored: dict[str, Any], fine_tunes: bool
) -> None:
    recipe = "finetune" if fine_tunes else "plain"
    assert of(fine_tunes, **stored, fresh_recipe="plain") == of(fine_tunes, recipe=recipe)
    found = asdict(of(fine_tunes, **stored, fresh_recipe="plain"))
    assert {found[name] for name in ("mixup", "cutmix", "erasing", "dropout", "rand_augment_ops")} == {0}
    assert (found["optimizer"], found["schedule"], found["clip_norm"]) == ("adamw", "cosine", 1.0)
    assert (found["accumulation"], found["repeated_augmentation"]) == (1, 1)


def test_deit_has_the_augmentation_of_its_paper() -> None:
    """Table 9 of arXiv 2012.12877."""
    found = of(recipe="deit")
    assert (found.mixup, found.cutmix, found.erasing) == (0.8, 1.0, 0.25)
    assert (found.rand_augment_magnitude, found.rand_augment_ops) == (9, 2)
    assert (found.stochastic_depth, found.label_smoothing, found.repeated_augmentation) == (0.1, 0.1, 3)


@pytest.mark.parametrize("recipe", ["plain", "deit", "finetune"])
def test_what_is_set_goes_before_the_recipe(recipe: str) -> None:
    given = {
        "mixup": 0.3,
        "ema_decay": 0.0,
        "stochastic_depth": 0.0,
        "optimizer": "muon",
        "warmup_epochs": 0.0,
    }
    found = asdict(of(recipe == "finetune", recipe=recipe, **given))
    assert {name: found[name] for name in given} == given
    left = asdict(DEFAULTS[recipe])
    unset = left.keys() - given.keys() - {"warmup_epochs"}
    assert {name: found[name] for name in unset} == {name: left[name] for name in unset}


def test_warm_up_takes_a_tenth_of_the_epochs() -> None:
    assert of(epochs=50).warmup_epochs == 5
    assert of(epochs=50, warmup_epochs=1.5).warmup_epochs == 1.5


def test_custom_implies_nothing() -> None:
    found = asdict(of(**CUSTOM))
    given = CUSTOM.keys() - {"recipe"}
    assert all(found[name] == CUSTOM[name] for name in given)
    off = {"accumulation": 1, "repeated_augmentation": 1, "backbone_rate": 1, "layer_decay": 1}
    assert all(value == off.get(name, 0) for name, value in found.items() if name not in given)


@pytest.mark.parametrize("name", ["optimizer", "schedule", "learning_rate"])
def test_custom_cannot_be_without_what_every_training_needs(name: str) -> None:
    rest = {key: value for key, value in CUSTOM.items() if key != name}
    with pytest.raises(ValueError, match=f"^{name}: recipe custom implies nothing; give {name}$"):
        RecipeSettings(**rest)


def test_auto_fine_tunes_what_has_weights_and_chooses_by_epochs_for_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(knobs, "DEIT_EPOCHS", 40)
    assert recipe_of(RecipeSettings(epochs=40), True) == "finetune"
    assert [recipe_of(RecipeSettings(epochs=epochs), False) for epochs in (39, 40)] == ["plain", "deit"]
    assert recipe_of(RecipeSettings(epochs=80, fresh_recipe="plain"), False) == "plain"
    assert fresh_recipe(RecipeSettings(epochs=1, fresh_recipe="deit")) == "deit"


@pytest.mark.parametrize("recipe", ["auto", "finetune"])
def test_what_inherits_learns_at_one_rate_in_all_layers_unless_told_otherwise(recipe: str) -> None:
    settings = RecipeSettings(recipe=recipe)  # pyright: ignore[reportArgumentType]
    assert recipe_of(settings, True, True) == "inherit"
    found = knobs_of(settings, True, True)
    assert (found.backbone_rate, found.layer_decay, found.frozen_epochs) == (1, 1, 0)
    assert found.learning_rate == knobs_of(settings, True).learning_rate
    told = RecipeSettings(layer_decay=0.9, head_rate=0.01, frozen_epochs=2.0)
    found = knobs_of(told, True, True)
    assert (found.layer_decay, found.learning_rate, found.frozen_epochs) == (0.9, 0.01, 2)
    assert knobs_of(told, False).frozen_epochs == 0


@pytest.mark.parametrize("recipe", ["plain", "deit", "custom"])
def test_what_begins_fresh_uses_no_pretrained_weights(recipe: str) -> None:
    settings = RecipeSettings(**CUSTOM | {"recipe": recipe})
    assert settings.begins_fresh
    assert not settings.fine_tunes("resnet18.a1_in1k")
    assert RecipeSettings().fine_tunes("resnet18.a1_in1k")


def test_the_classifiers_rate_is_that_of_fine_tuning() -> None:
    assert of(True, head_rate=0.02, learning_rate=0.5).learning_rate == 0.02
    assert of(False, head_rate=0.02, learning_rate=0.5).learning_rate == 0.5


def test_lion_takes_a_smaller_rate_and_a_larger_decay_unless_they_are_set() -> None:
    found, adamw = of(optimizer="lion"), of()
    assert found.learning_rate == pytest.approx(adamw.learning_rate * 0.3)
    assert found.weight_decay == pytest.approx(adamw.weight_decay * 3)
    assert of(optimizer="lion", learning_rate=0.1).learning_rate == 0.1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dropout", 0.95),
        ("mixup", -0.1),
        ("cutmix", 11.0),
        ("erasing", 1.1),
        ("rand_augment_magnitude", 10.5),
        ("rand_augment_ops", 11),
        ("repeated_augmentation", 0),
        ("clip_norm", -1.0),
        ("accumulation", 0),
        ("warmup_epochs", 28.0),
        ("learning_rate", float("nan")),
    ],
)
def test_values_out_of_range_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        RecipeSettings(**{name: value})
