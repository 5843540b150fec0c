"""Pretrained weights that a search asks for, and the baselines that it gets by itself."""

from __future__ import annotations

import json
import random
import time

import pytest
import timm
import torch

from search import config, launch, pretrained, validate
from search.errors import UsageError
from search.plan import make_plan
from search.store.read.searches import search_by_name
from search.store.session import open_store
from spaces.dims import SpaceError
from workers import weights
from workers.data.summary import DataSummary

DEIT, RESNET = "deit_tiny_patch16_224.fb_in1k", "resnet18.a1_in1k"
DIGITS = {"name": "hunt", "data": {"source": "digits"}}
VIT = {"families": ["vit"], "vit": {"depth": [1], "heads": [1]}}
ZOO = {"families": ["zoo"], "zoo": {"model": [DEIT, RESNET]}}


def loaded(**sections):
    return config.from_dict(DIGITS | {"space": VIT} | sections)


def plan_of(num_train=1000, **sections):
    values = loaded(**sections)
    data = DataSummary(8, 1, tuple("0123456789"), {"train": num_train, "val": 10, "test": 10}, "digest")
    return make_plan(values, data, [pretrained.zoo_of(values)])


def folder_with(tmp_path, *names):
    """A `weights_dir` whose files have the names of weights; nothing reads them here."""
    for name in names:
        (tmp_path / f"{name}.safetensors").write_bytes(b"weights")
    return {"weights_dir": str(tmp_path)}


def usable(tmp_path, *names, cut=0):
    """The same with weights in them, all 0. cut: blocks that are missing at the end of a plain transformer."""
    for name in names:
        more = {"depth": 12 - cut} if cut else {}
        with torch.device("meta"):
            state = timm.create_model(name.partition(".")[0], **more).state_dict()
        zeros = {key: torch.zeros((), dtype=own.dtype).expand(own.shape) for key, own in state.items()}
        torch.save(zeros, tmp_path / f"{name}.pth")  # which keeps a number a tensor
    return {"weights_dir": str(tmp_path)}


def refused(plan, check):
    with pytest.raises(UsageError) as caught:
        check(plan)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


# -- names of space.zoo.model


def test_names_beyond_the_well_known_ones_are_looked_up_in_timm():
    zoo = pretrained.zoo_of(loaded(space={"families": ["zoo"], "zoo": {"model": ["resnet26.bt_in1k", DEIT]}}))
    assert zoo.models["resnet26.bt_in1k"].depth is None
    assert zoo.models[DEIT].depth == 12


def test_weights_of_one_s_own_lie_in_a_folder_under_the_architecture_s_name(tmp_path):
    mine = "deit_tiny_patch16_224.flowers"
    space = {"families": ["zoo"], "zoo": {"model": mine}}
    training = folder_with(tmp_path, mine)
    plan = plan_of(space=space, training=training)
    assert pretrained.zoo_models(plan.space) == [mine]
    pretrained.check_reachable(plan)
    spec = plan.space.spec(plan.space.sample(random.Random(0)))
    assert (spec.model, spec.weights) == ("deit_tiny_patch16_224", mine)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("deit_tny_patch16_224.fb_in1k", f"not an entry point of timm .*timm has {DEIT}"),
        (
            "resnet18.mine",
            "names no pretrained weights; timm has resnet18.a1_in1k.* no resnet18.mine.safetensors",
        ),
        ("resnet18", "'resnet18' names no pretrained weights; timm has resnet18.a1_in1k"),
        ("hf-hub:someone/model", "'hf-hub:someone/model' is no name of weights"),
        ("../resnet18", "is no name of weights"),
        ("paretovit_resnet", "names no pretrained weights"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_what_is_near(name, says):
    with pytest.raises(SpaceError, match=f"zoo.model: .*{says}"):
        pretrained.zoo_of(loaded(space={"families": ["zoo"], "zoo": {"model": [name]}}))


def test_weights_that_are_not_to_be_had_are_refused_before_anything_begins(tmp_path):
    training = folder_with(tmp_path, DEIT)
    text = refused(plan_of(space=ZOO, training=training), pretrained.check_reachable)
    assert text.startswith(f"stored config: space.zoo.model: the weights {RESNET} are not on this machine")
    assert text.endswith(f"put {RESNET}.safetensors into {tmp_path}")
    folder_with(tmp_path, RESNET)
    pretrained.check_reachable(plan_of(space=ZOO, training=training))


def test_nobody_asks_for_weights_that_a_plain_recipe_does_not_use(monkeypatch):
    monkeypatch.setattr(weights, "reachable", lambda name, folder: pytest.fail(name))
    plan = plan_of(space=ZOO, training={"recipe": "plain"})
    pretrained.check_reachable(plan)
    pretrained.with_defaults(plan)


# -- files that are here


def test_files_that_fit_everything_that_begins_from_them_pass(tmp_path):
    training = usable(tmp_path, DEIT, RESNET)
    plan, _ = pretrained.with_defaults(plan_of(space=ZOO, training=training))
    assert [name for name, spec in plan.baselines.items() if spec.weights] == ["deit_tiny", "resnet18"]
    pretrained.check_files(plan)


def test_a_file_with_too_few_blocks_is_refused_where_more_are_searched(tmp_path):
    training = usable(tmp_path, DEIT, cut=6)
    for blocks, fits in ([3, 6], True), ([3, 6, 9], False):
        space = {"families": ["zoo"], "zoo": {"model": [DEIT], "blocks": blocks}}
        plan = plan_of(space=space, training=training, baselines={})
        if fits:
            pretrained.check_files(plan)
        else:
            text = refused(plan, pretrained.check_files)
            assert text.startswith(f"stored config: space.zoo.model: weights {DEIT} do not fit deit_tiny")
            assert "blocks.6.norm1.weight is [192] in the network, and the file lacks it" in text
            assert str(tmp_path / f"{DEIT}.pth") in text


def test_a_file_that_fits_images_of_some_sizes_alone_is_refused(tmp_path):
    pit = "pit_ti_224.in1k"
    training = usable(tmp_path, pit)
    for sizes, fits in ([224], True), ([192, 224], False), ([224, 256], False):
        space = {"families": ["zoo"], "zoo": {"model": [pit], "image_size": sizes}}
        plan = plan_of(space=space, training=training, baselines={})
        if fits:
            pretrained.check_files(plan)
        else:
            assert "pos_embed is [1, 64, 27, 27] in the file" in refused(plan, pretrained.check_files)


def test_a_file_of_a_baseline_that_nobody_named_is_tried_too(tmp_path):
    plan, _ = pretrained.with_defaults(plan_of(training=folder_with(tmp_path, DEIT)))
    text = refused(plan, pretrained.check_files)
    assert text.startswith(
        f"stored config: baselines.deit_tiny.weights: {tmp_path}/{DEIT}.safetensors: no weights"
    )


def test_nobody_tries_files_that_a_plain_recipe_does_not_use_or_that_are_yet_to_come(tmp_path):
    training = folder_with(tmp_path, DEIT, RESNET)
    pretrained.check_files(plan_of(space=ZOO, training=training | {"recipe": "plain"}))
    pretrained.check_files(plan_of(space=ZOO))


def test_weights_of_a_baseline_that_are_not_to_be_had_name_it():
    given = {"mine": {"model": "resnet18", "weights": "resnet18.mine"}}
    text = refused(plan_of(baselines=given), pretrained.check_reachable)
    assert text.startswith("stored config: baselines.mine.weights: the weights resnet18.mine are not on")


# -- recipe finetune


def test_finetune_is_refused_where_candidates_or_baselines_have_no_weights():
    finetune = {"recipe": "finetune"}
    mixed = {"families": ["vit", "zoo", "swin"]}
    text = refused(plan_of(space=mixed, training=finetune), pretrained.check_recipe)
    assert "training.recipe: finetune needs weights for every candidate, and vit and swin have none" in text
    given = {"fresh": {"model": "resnet18"}}
    text = refused(plan_of(space=ZOO, training=finetune, baselines=given), pretrained.check_recipe)
    assert "baselines.fresh: recipe finetune needs weights for every baseline" in text
    pretrained.check_recipe(plan_of(space=ZOO, training=finetune, baselines={}))
    pretrained.check_recipe(plan_of(space=mixed))


# -- baselines that nobody named


def test_the_scaled_resnet_and_those_pretrained_networks_that_are_here_are_the_baselines(tmp_path):
    plan, missing = pretrained.with_defaults(plan_of(training=folder_with(tmp_path, DEIT, RESNET)))
    assert list(plan.baselines) == ["resnet", "deit_tiny", "resnet18"]
    assert missing is None
    assert [spec.weights for spec in plan.baselines.values()] == [None, DEIT, RESNET]
    assert [spec.image_size for spec in plan.baselines.values()] == [8, 64, 64]
    assert plan.baselines["resnet"].model == "paretovit_resnet"
    assert all(plan.baseline_analysis[name]["flops"] > 0 for name in plan.baselines)


def test_what_is_not_here_is_left_out_and_the_reason_is_said(tmp_path, monkeypatch):
    plan, missing = pretrained.with_defaults(plan_of(training=folder_with(tmp_path, RESNET)))
    assert list(plan.baselines) == ["resnet", "resnet18"]
    assert (
        missing == "no pretrained deit_tiny: the weights are not on this machine, and HF_HUB_OFFLINE is set"
    )
    monkeypatch.setattr(pretrained.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(weights, "reachable", lambda name, folder: False)
    _, missing = pretrained.with_defaults(plan_of())
    assert missing is not None
    assert "deit_tiny and resnet18: the weights are neither on this machine nor" in missing


def test_weights_on_the_hub_are_here(monkeypatch):
    monkeypatch.setattr(weights, "reachable", lambda name, folder: name == DEIT)
    assert list(pretrained.with_defaults(plan_of())[0].baselines) == ["resnet", "deit_tiny"]


@pytest.mark.parametrize(
    ("recipe", "names"), [("plain", ["resnet"]), ("finetune", ["deit_tiny", "resnet18"])]
)
def test_a_recipe_leaves_out_the_baselines_that_it_cannot_train(recipe, names, tmp_path):
    training = folder_with(tmp_path, DEIT, RESNET) | {"recipe": recipe}
    plan, missing = pretrained.with_defaults(plan_of(space=ZOO, training=training))
    assert list(plan.baselines) == names
    assert (missing is not None) == (recipe == "plain")


def test_baselines_that_were_named_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(weights, "reachable", lambda name, folder: pytest.fail(name))
    for given in ({}, {"mine": {"model": "resnet18", "image_size": 32}}):
        plan = plan_of(baselines=given)
        assert pretrained.with_defaults(plan) == (plan, None)
        assert list(plan.baselines) == list(given)


def test_a_stored_search_has_the_baselines_that_it_began_with(tmp_path):
    training = usable(tmp_path, DEIT, RESNET)
    begun = validate.check_new(loaded(training=training), time.time()).plan
    stored = json.loads(json.dumps(begun.config.to_dict()))
    for path in tmp_path.iterdir():
        path.unlink()
    again = validate.check(config.from_dict(stored), time.time()).plan
    assert again.config == begun.config
    assert dict(again.baselines) == dict(begun.baselines)
    assert [spec.digest for spec in again.baselines.values()] == [s.digest for s in begun.baselines.values()]


def test_a_search_of_before_keeps_the_one_baseline_that_it_had(tmp_path):
    stored = loaded(training=folder_with(tmp_path, DEIT, RESNET)).to_dict()
    assert stored["baselines"] is None
    assert list(validate.check(config.from_dict(stored), time.time()).plan.baselines) == ["resnet"]


def test_starting_stores_the_baselines_and_says_what_is_missing_once(tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(launch, "_drive", lambda *arguments, **others: None)
    training = usable(tmp_path, DEIT)
    launch.start(loaded(training=training), str(tmp_path / "p.db"), said.append)
    store = open_store(str(tmp_path / "p.db"), create=False)
    with store.read() as reader:
        row = search_by_name(reader, "hunt")
    store.close()
    assert {name: given["weights"] for name, given in row.config["baselines"].items()} == {
        "resnet": None,
        "deit_tiny": DEIT,
    }
    (line,) = [line for line in said if line.startswith("baselines: ")]
    assert line.startswith("baselines: resnet, deit_tiny; no pretrained resnet18: ")
    assert sum(line.startswith("warning: ") for line in said) == 1


# -- advice


def test_fresh_weights_on_few_images_are_advised_against():
    text = pretrained.advice(plan_of(49_999))
    assert text is not None
    assert text.startswith("vit will be trained from fresh weights on 49,999 images")
    assert "add zoo to space.families" in text
    assert "training.weights_dir" in text
    assert pretrained.advice(plan_of(50_000)) is None


def test_who_has_pretrained_weights_needs_no_advice():
    assert pretrained.advice(plan_of(100, space=ZOO)) is None
    plain = pretrained.advice(plan_of(100, space=ZOO, training={"recipe": "plain"}))
    assert plain is not None
    assert "training.recipe auto" in plain
    mixed = pretrained.advice(plan_of(100, space={"families": ["vit", "zoo"]}))
    assert mixed is not None
    assert mixed.startswith("vit will be")
