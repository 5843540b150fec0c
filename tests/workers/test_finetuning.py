from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch

import spaces.models
from spaces.spec import ArchSpec
from workers.errors import CandidateError
from workers.finetuning import SMALLEST_SCALE, parameter_groups
from workers.knobs import knobs_of
from workers.recipe import EDGE_RATE, Training, compose, is_fine_tuned
from workers.settings import RecipeSettings

ARGS = {
    "img_size": 16,
    "patch_size": 4,
    "embed_dim": 16,
    "depth": 3,
    "num_heads": 2,
    "in_chans": 1,
    "num_classes": 5,
}
VIT = ArchSpec("vit_tiny_patch16_224", ARGS, 16, weights="mine")
RESNET = ArchSpec("resnet18", {"in_chans": 1, "num_classes": 5}, 32, weights="mine")


def shares(spec: ArchSpec, **settings: float) -> dict[str, float]:
    """Share of the rate, by parameter."""
    network = spaces.models.build(spec)
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    groups = parameter_groups(network, knobs_of(RecipeSettings(**settings), True))
    found = {names[id(p)]: group["lr_scale"] for group in groups for p in group["params"]}
    assert found.keys() == set(names.values())
    assert sum(len(group["params"]) for group in groups) == len(names)
    return found


def training(**recipe: float) -> Training:
    settings = RecipeSettings(epochs=10, batch_size=128, **recipe)
    return compose(VIT, settings, 10, 1, torch.device("cpu"))


def test_every_layer_learns_more_slowly_than_the_one_above_it() -> None:
    found = shares(VIT, backbone_rate=0.4, layer_decay=0.5)
    assert found["head.weight"] == found["head.bias"] == 1
    blocks = [found[f"blocks.{number}.attn.qkv.weight"] for number in range(3)]
    assert blocks == pytest.approx([0.4 * 0.5**3, 0.4 * 0.5**2, 0.4 * 0.5])
    assert found["patch_embed.proj.weight"] == found["pos_embed"] == pytest.approx(0.4 * 0.5**4)


def test_a_convolutional_network_is_divided_by_its_own_layers() -> None:
    found = shares(RESNET, backbone_rate=0.5, layer_decay=0.75)
    order = [
        "conv1.weight",
        "layer1.0.conv1.weight",
        "layer2.1.conv1.weight",
        "layer4.1.conv2.weight",
        "fc.weight",
    ]
    assert all(found[low] < found[high] for low, high in pairwise(order))
    assert found["fc.weight"] == 1


def test_no_layer_of_a_deep_network_stands_still() -> None:
    found = shares(ArchSpec(VIT.model, ARGS | {"depth": 40}, 16), backbone_rate=0.5, layer_decay=0.5)
    assert found["patch_embed.proj.weight"] == pytest.approx(0.5 * SMALLEST_SCALE)


def test_without_a_decay_all_layers_learn_alike_and_at_rate_0_none() -> None:
    found = shares(VIT, backbone_rate=0.5, layer_decay=1)
    assert set(found.values()) == {0.5, 1}
    made = training(backbone_rate=0)
    before = {name: value.clone() for name, value in made.model.named_parameters()}
    for _ in range(3):
        made.model(torch.randn(4, 1, 16, 16)).square().sum().backward()
        made.optimizer.step()
        made.advance()
    moved = {name for name, value in made.model.named_parameters() if not torch.equal(value, before[name])}
    assert moved == {"head.weight", "head.bias"}


def test_both_classifiers_of_a_distilled_network_learn_at_the_full_rate() -> None:
    args = {"img_size": 32, "depth": 1, "num_classes": 5}
    found = shares(ArchSpec("deit_tiny_distilled_patch16_224", args, 32), backbone_rate=0.5)
    assert {name for name, share in found.items() if share == 1} == {
        f"{head}.{kind}" for head in ("head", "head_dist") for kind in ("weight", "bias")
    }


def test_warm_up_and_cosine_keep_the_shares() -> None:
    made = training(head_rate=2e-3, backbone_rate=0.5, layer_decay=0.8)
    peak = 2e-3 * 128 / 256
    for update, expected in (
        (0, peak * EDGE_RATE),
        (10, peak),
        (55, peak * (EDGE_RATE + (1 - EDGE_RATE) / 2)),
    ):
        made.seek(update)
        assert made.learning_rate == pytest.approx(expected, rel=1e-3)
        for group in made.optimizer.param_groups:
            assert group["lr"] == pytest.approx(made.learning_rate * group["lr_scale"])


def test_norms_biases_and_positions_are_spared_from_weight_decay() -> None:
    made = training(weight_decay=0.05)
    names = {id(parameter): name for name, parameter in made.model.named_parameters()}
    decayed = {
        names[id(p)]
        for group in made.optimizer.param_groups
        if group["weight_decay"] > 0
        for p in group["params"]
    }
    assert "blocks.0.attn.qkv.weight" in decayed
    assert "head.weight" in decayed
    assert not {name for name in decayed if name.endswith("bias") or "norm" in name or "pos_embed" in name}


def test_fine_tuning_without_weights_is_the_candidates_fault() -> None:
    fresh = ArchSpec(VIT.model, ARGS, 16)
    with pytest.raises(
        CandidateError, match=r"recipe finetune begins from pretrained weights, and there are none"
    ):
        compose(fresh, RecipeSettings(recipe="finetune"), 10, 1, torch.device("cpu"))


@pytest.mark.parametrize("recipe, expected", [("auto", True), ("finetune", True), ("plain", False)])
def test_weights_are_begun_from_unless_the_recipe_is_plain(recipe: Any, expected: bool) -> None:
    settings = RecipeSettings(recipe=recipe)
    assert is_fine_tuned(VIT, settings) is expected
    groups = compose(VIT, settings, 10, 1, torch.device("cpu")).optimizer.param_groups
    assert any("lr_scale" in group for group in groups) is expected
