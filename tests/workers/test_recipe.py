from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from timm.optim import Lion, Muon
from torch import nn
from torch.optim import AdamW

import spaces.models
from spaces.spec import ArchSpec
from workers.errors import CandidateError
from workers.recipe import EDGE_RATE, Training, compose, seed_of
from workers.settings import RecipeSettings

CPU = torch.device("cpu")
VIT = ArchSpec(
    "vit_base_patch16_224",
    {
        "img_size": 8,
        "patch_size": 2,
        "embed_dim": 16,
        "depth": 2,
        "num_heads": 2,
        "in_chans": 1,
        "num_classes": 10,
    },
    8,
)


def training(spec: ArchSpec = VIT, steps: int = 10, seed: int = 1, **recipe) -> Training:
    return compose(spec, RecipeSettings(**recipe), steps, seed, CPU)


def rates(made: Training, updates: int) -> list[float]:
    found = []
    for update in range(updates):
        made.seek(update)
        found.append(made.learning_rate)
    return found


def test_the_rate_warms_up_to_its_peak_and_falls_as_a_cosine() -> None:
    found = rates(training(epochs=10, learning_rate=1e-3, batch_size=128), 100)
    peak = 1e-3 * 128 / 256
    assert found[0] == pytest.approx(peak * EDGE_RATE)
    assert found[10] == max(found) == pytest.approx(peak)
    assert found[:11] == sorted(found[:11])
    assert found[10:] == sorted(found[10:], reverse=True)
    assert found[55] == pytest.approx(peak * (EDGE_RATE + (1 - EDGE_RATE) / 2), rel=1e-3)
    assert found[99] < 2 * peak * EDGE_RATE


def test_the_rate_of_wsd_is_stable_and_decays_in_the_last_fifth() -> None:
    found = rates(training(epochs=10, schedule="wsd", learning_rate=1e-3, batch_size=256), 100)
    assert found[:11] == sorted(found[:11])
    assert set(found[10:83]) == {1e-3}
    assert found[82:] == sorted(found[82:], reverse=True)
    assert found[83] < 1e-3
    assert found[91] == pytest.approx(1e-3 * (EDGE_RATE + (1 - EDGE_RATE) * (1 - 0.5**0.5)))
    assert found[99] < 0.1e-3


@pytest.mark.parametrize("schedule", ["cosine", "wsd"])
def test_steps_of_several_batches_are_fewer_and_have_a_larger_rate(schedule: str) -> None:
    made = training(epochs=10, schedule=schedule, learning_rate=1e-3, batch_size=64, accumulation=4)
    found = rates(made, 30)  # 10 batches an epoch: steps of 4, 4 and 2
    assert max(found) == found[3] == pytest.approx(1e-3)
    assert found[-1] < 0.25e-3


@pytest.mark.parametrize(("optimizer", "kind"), [("adamw", AdamW), ("lion", Lion), ("muon", Muon)])
def test_an_optimizer_is_called_by_its_name_and_spares_norms(optimizer: str, kind: type) -> None:
    made = training(optimizer=optimizer, weight_decay=0.1)
    assert isinstance(made.optimizer, kind)
    decays = {
        id(parameter): group["weight_decay"]
        for group in made.optimizer.param_groups
        for parameter in group["params"]
    }
    named = {name: decays[id(parameter)] for name, parameter in made.model.named_parameters()}
    assert named["blocks.0.attn.qkv.weight"] == 0.1
    assert named["blocks.0.norm1.weight"] == named["pos_embed"] == named["head.bias"] == 0


def test_muon_turns_matrices_and_leaves_classifier_and_positions_to_adamw() -> None:
    made = training(optimizer="muon")
    for parameter in made.model.parameters():
        parameter.grad = torch.randn_like(parameter)
    made.optimizer.step()
    turned = {
        name
        for name, parameter in made.model.named_parameters()
        if made.optimizer.state[parameter]["use_muon"]
    }
    assert "blocks.1.mlp.fc1.weight" in turned
    assert not {"head.weight", "pos_embed", "cls_token", "norm.weight"} & turned


def test_dropout_reaches_the_network() -> None:
    assert training(dropout=0.3).model.get_submodule("head_drop").p == 0.3
    assert training().model.get_submodule("head_drop").p == 0


def test_a_network_without_dropout_is_refused_where_some_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def build(spec: ArchSpec, stochastic_depth: float | None = None) -> nn.Module:
        if "drop_rate" in spec.args:
            raise TypeError("unexpected keyword argument 'drop_rate'")
        return nn.Linear(4, 2)

    monkeypatch.setattr(spaces.models, "build", build)
    assert not training().knobs.dropout
    with pytest.raises(CandidateError, match="has no dropout"):
        training(dropout=0.1)


@pytest.mark.parametrize("warmup_epochs", [0, 2])
def test_a_schedule_may_be_all_warm_up_or_have_none(warmup_epochs: float) -> None:
    found = rates(training(epochs=2, warmup_epochs=warmup_epochs), 20)
    assert all(math.isfinite(rate) and rate > 0 for rate in found)


def test_norms_biases_and_positions_are_spared_from_weight_decay() -> None:
    made = training(weight_decay=0.05)
    names = {id(parameter): name for name, parameter in made.model.named_parameters()}
    spared = {
        names[id(parameter)]
        for group in made.optimizer.param_groups
        if group["weight_decay"] == 0
        for parameter in group["params"]
    }
    assert "pos_embed" in spared
    assert "blocks.0.norm1.weight" in spared
    assert "blocks.0.attn.qkv.weight" not in spared
    assert {name for name in names.values() if name.endswith("bias")} <= spared


def test_stochastic_depth_grows_with_depth() -> None:
    blocks = training(stochastic_depth=0.2).model.get_submodule("blocks")
    found = [getattr(block.drop_path1, "drop_prob", 0.0) for block in blocks.children()]
    assert found == [0.0, pytest.approx(0.2)]


def test_a_network_without_drop_paths_is_trained_without() -> None:
    made = training(ArchSpec("dla46_c", {"num_classes": 10, "in_chans": 1}, 32), stochastic_depth=0.1)
    assert not made.stochastic_depth
    assert training(stochastic_depth=0.1).stochastic_depth


def test_fresh_weights_follow_the_seed() -> None:
    first, again, other = (training(seed=seed).model.state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["pos_embed"], other["pos_embed"])


def test_averaged_weights_follow_the_trained_ones_with_buffers() -> None:
    args = {
        "channels": [8, 8, 8, 8],
        "layers": [1, 1, 1, 1],
        "stem_stride": 1,
        "in_chans": 1,
        "num_classes": 10,
    }
    made = training(ArchSpec("paretovit_resnet", args, 32), ema_decay=0.9)
    assert made.ema is not None
    for _ in range(3):
        made.model(torch.randn(4, 1, 32, 32))
        made.optimizer.step()
        made.advance()
    trained, averaged = made.model.state_dict(), made.scored.state_dict()
    assert averaged["bn1.num_batches_tracked"] == trained["bn1.num_batches_tracked"] == 3
    assert not torch.equal(averaged["bn1.running_var"], torch.ones_like(averaged["bn1.running_var"]))
    assert not torch.equal(averaged["bn1.running_var"], trained["bn1.running_var"])


def test_without_an_average_the_trained_weights_are_scored() -> None:
    made = training(ema_decay=0.0)
    assert made.scored is made.model


def test_seeds_differ_by_every_part_and_fit_a_generator() -> None:
    seeds = {seed_of(a, b, c) for a in range(3) for b in range(-1, 3) for c in ("weights", "batches")}
    assert len(seeds) == 24
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seed_of(1, 2) != seed_of(12)


def test_both_classifiers_of_a_distilled_network_begin_as_timm_has_them() -> None:
    spec = ArchSpec(
        "deit_tiny_distilled_patch16_224",
        {"img_size": 32, "depth": 1, "num_classes": 10, "in_chans": 1},
        32,
    )
    model: Any = compose(spec, RecipeSettings(epochs=1), 1, 0, torch.device("cpu")).model
    for head in (model.head, model.head_dist):
        assert head.weight.std() < 0.03
