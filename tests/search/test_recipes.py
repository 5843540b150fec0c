"""Which recipe trains a new search, and settings of training that nothing in it would use."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from search import config, recipes
from search.errors import UsageError
from search.plan import Plan, Teacher, make_plan
from workers import knobs
from workers.data.summary import DataSummary

DATA = DataSummary(28, 1, tuple("0123456789"), {"train": 640, "val": 10, "test": 10}, "digest")
RESNET = {"resnet": {"model": "resnet10t", "image_size": 64}}
PRETRAINED = {"resnet": {"model": "resnet18", "image_size": 64, "weights": "resnet18.a1_in1k"}}
ZOO = {"families": ["zoo"], "zoo": {"model": ["resnet18.a1_in1k"]}}


def config_of(baselines: dict[str, Any] | None = None, **training: Any) -> config.SearchConfig:
    return config.from_dict(
        {
            "name": "s",
            "data": {"source": "digits"},
            "training": training,
            "baselines": baselines if baselines is not None else RESNET,
        }
    )


def plan_of(
    baselines: dict[str, Any] | None = None, space: dict[str, Any] | None = None, **training: Any
) -> Plan:
    values = config_of(baselines, **training).to_dict()
    return make_plan(config.from_dict(values | {"space": space or {"families": ["vit", "swin"]}}), DATA)


def refused(plan: Plan) -> str:
    with pytest.raises(UsageError) as caught:
        recipes.check(plan)
    return str(caught.value)


@pytest.mark.parametrize("epochs", [39, 40])
def test_auto_is_decided_when_a_search_begins_and_stored_with_it(
    epochs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knobs, "DEIT_EPOCHS", 40)
    found = recipes.decided(config_of(epochs=epochs))
    assert found.training.fresh_recipe == ("deit" if epochs == 40 else "plain")
    monkeypatch.setattr(knobs, "DEIT_EPOCHS", 10_000 if epochs == 40 else 1)
    again = config.from_stored(found.to_dict())
    assert again == found
    assert recipes.decided(again) == again


def test_what_is_no_question_is_left_as_it_is() -> None:
    for given in (config_of(recipe="plain"), config_of(recipe="deit"), config_of(fresh_recipe="deit")):
        assert recipes.decided(given) == given


@pytest.mark.parametrize("epochs", [9, 100_000])
def test_a_search_stored_before_there_was_a_choice_goes_on_with_plain(epochs: int) -> None:
    stored = config_of(epochs=epochs).to_dict()
    first = {"recipe", "epochs", "batch_size", "warmup_epochs", "seed"}
    stored["training"] = {key: value for key, value in stored["training"].items() if key in first}
    stored["training"] |= {"learning_rate": 0.004, "weight_decay": 0.05, "label_smoothing": 0.1}
    stored["training"] |= {"stochastic_depth": 0.05, "ema_decay": 0.98, "max_shift": 0.1}
    settings = config.from_stored(stored).training
    assert knobs.recipe_of(settings, False) == "plain"
    expected = knobs.knobs_of(dataclasses.replace(settings, recipe="plain"), False)
    assert knobs.knobs_of(settings, False) == expected


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (
            {"recipe": "plain", "head_rate": 0.1},
            "training.head_rate: .*recipe plain begins from fresh weights",
        ),
        ({"recipe": "deit", "layer_decay": 0.9}, "training.layer_decay: .*recipe deit begins from fresh"),
        ({"backbone_rate": 0.9}, "training.backbone_rate: .*nothing here begins from pretrained weights"),
        ({"recipe": "plain", "fresh_recipe": "deit"}, "training.fresh_recipe: only recipe auto"),
        ({"rand_augment_magnitude": 5.0}, "training.rand_augment_magnitude: does nothing .*rand_augment_ops"),
        ({"rand_augment_ops": 2}, "training.rand_augment_ops: .*give rand_augment_magnitude"),
        ({"recipe": "deit", "rand_augment_ops": 0, "rand_augment_magnitude": 3.0}, "does nothing"),
        ({"accumulation": 6}, "training.accumulation: 6 is more than the 5 batches of an epoch"),
    ],
)
def test_a_setting_that_nothing_would_use_is_refused(training: dict[str, Any], words: str) -> None:
    import re

    assert re.search(words, refused(plan_of(**training)))


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"recipe": "deit", "rand_augment_magnitude": 5.0},
        {"recipe": "deit", "rand_augment_ops": 0},
        {"rand_augment_ops": 1, "rand_augment_magnitude": 5.0, "mixup": 0.2, "accumulation": 5},
        {"dropout": 0.1, "stochastic_depth": 0.2, "optimizer": "muon"},
        {"recipe": "custom", "optimizer": "lion", "schedule": "wsd", "learning_rate": 1e-3},
    ],
)
def test_settings_that_are_used_are_taken(training: dict[str, Any]) -> None:
    recipes.check(plan_of(**training))


def test_rates_of_fine_tuning_are_taken_where_a_baseline_or_the_zoo_has_weights() -> None:
    recipes.check(plan_of(PRETRAINED, head_rate=0.1))
    recipes.check(plan_of({}, ZOO, backbone_rate=0.5))


def test_the_rate_of_fresh_weights_is_refused_where_everything_is_fine_tuned() -> None:
    text = refused(plan_of({}, ZOO, recipe="finetune", learning_rate=0.1))
    assert "training.learning_rate: everything here begins from pretrained weights" in text
    recipes.check(plan_of({}, ZOO, recipe="plain", learning_rate=0.1))


@pytest.mark.parametrize(("name", "model"), [("stochastic_depth", "dla46_c"), ("dropout", "sequencer2d_s")])
def test_a_network_that_has_none_is_named(name: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of({"other": {"model": model, "image_size": 64}}, **{name: 0.1})
    if name == "dropout":
        takes = recipes._takes
        monkeypatch.setattr(recipes, "_takes", lambda spec, *rest: spec.model != model and takes(spec, *rest))
    assert f"training.{name}: {model} has none; remove it" in refused(plan)


@pytest.mark.parametrize(
    ("baselines", "space", "training", "words"),
    [
        (RESNET, None, {"epochs": 3}, "plain"),
        (PRETRAINED, None, {"recipe": "auto", "fresh_recipe": "deit"}, "deit and finetune"),
        ({}, ZOO, {"recipe": "finetune"}, "finetune"),
        ({}, ZOO, {}, "finetune"),
        (PRETRAINED, None, {"recipe": "deit"}, "deit"),
    ],
)
def test_validate_says_how_things_will_train(
    baselines: dict[str, Any], space: dict[str, Any] | None, training: dict[str, Any], words: str
) -> None:
    assert recipes.line(plan_of(baselines, space, **training)) == words


TAUGHT = {"teacher": {"checkpoint": "/x"}, "alpha": 1.0}


def taught(plan: Plan, epochs: int = 0) -> Plan:
    spec = plan.baselines["resnet"]
    return dataclasses.replace(plan, teacher=Teacher("mine", "taken over", spec, epochs))


def test_rand_augment_of_no_strength_is_refused_where_the_recipe_draws_operations() -> None:
    assert "training.rand_augment_magnitude: 2 operations of no strength an image" in refused(
        plan_of(recipe="deit", rand_augment_magnitude=0)
    )
    recipes.check(plan_of(recipe="deit", rand_augment_ops=0))
    recipes.check(plan_of(recipe="plain", rand_augment_magnitude=0))


def test_a_shift_of_less_than_a_pixel_is_refused() -> None:
    small = plan_of({}, {"families": ["vit"]}, recipe="plain", max_shift=0.01)
    assert (
        "training.max_shift: 0.01 of 28 px is less than a pixel, which moves nothing; give 0.036"
        in refused(small)
    )
    recipes.check(plan_of({}, {"families": ["vit"]}, recipe="plain", max_shift=0.036))
    recipes.check(plan_of({}, {"families": ["vit"]}, recipe="plain", max_shift=0))


def test_what_is_said_of_labels_that_have_no_share_of_the_loss_is_refused() -> None:
    plan = plan_of(recipe="plain", label_smoothing=0.1, distillation=TAUGHT)
    assert "training.label_smoothing: training.distillation.alpha 1 leaves labels no share" in refused(
        taught(plan)
    )
    recipes.check(taught(plan, epochs=3))
    recipes.check(taught(plan_of(recipe="plain", distillation=TAUGHT)))


def test_a_folder_of_weights_that_nothing_begins_from_is_refused(tmp_path: Any) -> None:
    plan = plan_of(recipe="plain", weights_dir=str(tmp_path))
    assert "training.weights_dir: recipe plain begins from fresh weights" in refused(plan)
    recipes.check(plan_of(recipe="auto", weights_dir=str(tmp_path)))


def test_layers_that_are_frozen_are_not_told_apart() -> None:
    plan = plan_of(PRETRAINED, backbone_rate=0, layer_decay=0.7)
    assert "training.layer_decay: backbone_rate 0 freezes the layers" in refused(plan)
