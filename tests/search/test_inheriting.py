"""What a search may inherit is asked before it begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import spaces.models
from search import config, inheriting, pretrained, recipes
from search.errors import UsageError
from search.plan import Plan, make_plan
from spaces.spec import ArchSpec
from workers.data.summary import DataSummary

DATA = DataSummary(28, 1, tuple("0123456789"), {"train": 640, "val": 10, "test": 10}, "digest")
SOURCE = ArchSpec("vit_tiny_patch16_224", {"img_size": 32, "embed_dim": 24, "depth": 3, "num_classes": 4}, 32)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    torch.manual_seed(0)
    save_file(spaces.models.build(SOURCE).state_dict(), tmp_path / "mine.safetensors")
    (tmp_path / "mine.json").write_text(json.dumps(SOURCE.to_dict()))
    return str(tmp_path)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.weights.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("search.pretrained.constants.HF_HUB_OFFLINE", True)


def plan_of(families: tuple[str, ...] = ("vit", "swin"), **training: Any) -> Plan:
    values = {"name": "s", "data": {"source": "digits"}, "training": training, "baselines": {}}
    return make_plan(config.from_dict(values | {"space": {"families": list(families)}}), DATA)


def refused(plan: Plan) -> str:
    with pytest.raises(UsageError) as caught:
        inheriting.check(plan)
    return str(caught.value)


def test_a_family_whose_source_is_here_and_fits_may_inherit(folder: str) -> None:
    plan = plan_of(inherit={"vit": "mine"}, weights_dir=folder, frozen_epochs=1.0)
    inheriting.check(plan)
    recipes.check(plan)
    assert plan.inherits("vit") == "mine"
    assert plan.inherits("swin") is None
    assert pretrained.fresh_families(plan) == ["swin"]
    assert recipes.line(plan) == "plain, and for vit inherit"


def test_without_it_nothing_is_asked() -> None:
    inheriting.check(plan_of())


@pytest.mark.parametrize(
    "inherit, words",
    [
        ({"hybrid": "mine"}, "training.inherit.hybrid: is no family of this search"),
        (
            {"pit": "mine"},
            "training.inherit.pit: pit cannot inherit from other networks; vit, deit, hybrid, swin can",
        ),
        ({"vit": "no/name"}, "training.inherit.vit: 'no/name' is no name of weights"),
        ({"vit": "other"}, "training.inherit.vit: weights other: 'other' is no network of timm"),
        (
            {"swin": "mine"},
            "training.inherit.swin: swin_tiny_patch4_window7_224 cannot inherit from a VisionTransformer",
        ),
        ({"vit": "deit_tiny_patch16_224.fb_in1k"}, "put deit_tiny_patch16_224.fb_in1k.safetensors into"),
    ],
)
def test_what_cannot_be_inherited_is_refused_with_its_key(
    inherit: dict[str, str], words: str, folder: str
) -> None:
    assert words in refused(plan_of(("vit", "swin", "pit"), inherit=inherit, weights_dir=folder))


def test_a_file_that_does_not_fit_is_refused_with_the_tensor(folder: str) -> None:
    save_file({"cls_token": torch.zeros(1, 1, 24)}, Path(folder, "mine.safetensors"))
    text = refused(plan_of(inherit={"vit": "mine"}, weights_dir=folder))
    assert "training.inherit.vit: weights mine do not fit" in text
    assert "mine.safetensors" in text


@pytest.mark.parametrize("recipe", ["plain", "deit"])
def test_a_recipe_of_fresh_weights_cannot_inherit(recipe: str, folder: str) -> None:
    plan = plan_of(inherit={"vit": "mine"}, weights_dir=folder, recipe=recipe)
    assert f"training.inherit: recipe {recipe} begins from fresh weights" in refused(plan)


def test_recipe_finetune_needs_every_family_to_inherit(folder: str) -> None:
    given: dict[str, Any] = {"inherit": {"vit": "mine"}, "weights_dir": folder, "recipe": "finetune"}
    pretrained.check_recipe(plan_of(("vit",), **given))
    with pytest.raises(
        UsageError, match=r"training\.recipe: finetune needs weights for every candidate, and swin"
    ):
        pretrained.check_recipe(plan_of(("vit", "swin"), **given))


def test_frozen_epochs_are_refused_where_nothing_is_fine_tuned_or_all_is_frozen(folder: str) -> None:
    with pytest.raises(UsageError, match=r"training\.frozen_epochs: is used in fine-tuning only"):
        recipes.check(plan_of(frozen_epochs=1.0))
    frozen = plan_of(inherit={"vit": "mine"}, weights_dir=folder, frozen_epochs=1.0, backbone_rate=0.0)
    with pytest.raises(UsageError, match=r"training\.frozen_epochs: backbone_rate 0 freezes"):
        recipes.check(frozen)
    with pytest.raises(UsageError, match=r"frozen_epochs: 30.0 is outside 0 to 27"):
        plan_of(frozen_epochs=30.0)
