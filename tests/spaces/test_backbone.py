"""A cut network of timm in front of a transformer."""

from __future__ import annotations

import random
from dataclasses import astuple

import pytest
import timm
import torch

from spaces import models, vit
from spaces.analysis import analyse, knows
from spaces.backbone import KNOWN, MODEL, Backbone, Cut
from spaces.costs import Cost, block, patches
from spaces.registry import SpaceError, make_space, named_space
from spaces.spec import ArchSpec, Task

ENCODER = {"depth": 1, "heads": 2, "head_width": 16, "mlp_ratio": 2.0, "pooling": "average"}
LEVELS = [(name, stage) for name, features in KNOWN.items() for stage in range(features.num_stages)]
BEYOND = ["mobilenetv3_small_050", "vit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "inception_v3"]


def backbone_space(task, beyond=(), **overrides):
    looked_up = {name: models.features(name) for name in beyond}
    informed = [Backbone(looked_up)] if looked_up else []
    return make_space(task, families=["backbone"], overrides={"backbone": overrides}, informed=informed)


def every_spec(space, count=3000):
    rng = random.Random(0)
    return list(
        {spec.digest: spec for spec in (space.spec(space.sample(rng)) for _ in range(count))}.values()
    )


# -- what is known without building


@pytest.mark.parametrize("image_size", [8, 28, 33, 65, 96])
@pytest.mark.parametrize(("name", "stage"), LEVELS)
def test_every_known_network_costs_at_every_stage_what_is_counted(name, stage, image_size):
    known = KNOWN[name].cut(stage, image_size, 1)
    found = models.features(name).cut(stage, image_size, 1)
    assert isinstance(known, Cut)
    if known.side == 0:
        assert isinstance(found, str)
    else:
        assert isinstance(found, Cut)
        assert (known.side, known.channels, known.cost) == (found.side, found.channels, found.cost)


@pytest.mark.parametrize("name", KNOWN)
def test_known_networks_have_the_stages_that_timm_has_of_them(name):
    assert KNOWN[name].num_stages == models.features(name).num_stages
    info = timm.create_model(name, features_only=True, pretrained=False).feature_info
    channels = [KNOWN[name].cut(stage, 224, 3).channels for stage in range(KNOWN[name].num_stages)]
    sides = [KNOWN[name].cut(stage, 224, 3).side for stage in range(KNOWN[name].num_stages)]
    assert channels == info.channels()
    assert sides == [224 // reduction for reduction in info.reduction()]


@pytest.mark.parametrize(("image_size", "channels"), [(28, 1), (96, 3)])
@pytest.mark.parametrize("name", ["resnet14t", "resnet34", "convnext_femto"])
def test_a_whole_network_runs_and_costs_what_the_closed_form_says(count_built, name, image_size, channels):
    space = backbone_space(Task(image_size, channels, 10), backbone=[name], depth=[1, 2], heads=[2])
    spec = space.spec(space.sample(random.Random(3)))
    built, known = count_built(spec), analyse(spec)
    assert built.output == (1, 10)
    assert built.finite
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)


@pytest.mark.parametrize("image_size", [32, 64])
@pytest.mark.parametrize("name", BEYOND)
def test_other_networks_of_timm_cost_what_building_them_tells(count_built, name, image_size):
    choices = {"depth": [1, 2], "heads": [2], "head_width": [16], "mlp_ratio": [2]}
    space = backbone_space(Task(image_size, 3, 10), [name], backbone=[name], **choices)
    family = Backbone({name: models.features(name)})
    for spec in every_spec(space, 40):
        built, known = count_built(spec, device="meta"), family.analyse(spec)
        assert not knows(spec)
        assert built.output == (1, 10)
        assert (built.params, built.flops) == (known.params, known.flops)
        assert built.activations == known.activations


def test_attention_of_a_network_is_counted_as_its_closed_form_counts_it():
    width, heads = 192, 3
    found = models.features("vit_tiny_patch16_224").cut(1, 64, 3)
    known = patches(4, 16, 3, width) + block(17, width, heads, 4.0) * 2 + Cost(params=18 * width)
    assert isinstance(found, Cut)
    for key in ("params", "flops", "activations", "unstored"):
        assert getattr(found.cost, key) == getattr(known, key)


@pytest.mark.parametrize(
    "args",
    [
        {"backbone": "mobilenetv3_small_050", "stage": 1},
        {"backbone": "resnet18", "stage": 5},
        {"backbone": "resnet18", "stage": -1},
        {"backbone": "resnet18", "stage": True},
        {"backbone": ["resnet18"], "stage": 1},
        {"backbone": "convnext_atto", "stage": 3},
        {"backbone": "resnet18"},
    ],
)
def test_what_has_no_closed_form_is_said_and_not_guessed(args):
    assert not knows(ArchSpec(MODEL, {**args, "img_size": 24, "in_chans": 1}, 24))


def test_the_rest_of_the_network_is_the_transformer_of_the_vit_family():
    values = {"backbone": "resnet18", "stage": 1, **ENCODER, "pooling": "class_token"}
    spec = Backbone().spec(Task(28, 1, 10), values)
    patch = vit.ViT().spec(Task(28, 1, 10), {"patch_size": 4, **ENCODER, "pooling": "class_token"})
    ours = {name for name, _ in models.build_shapes(spec).named_parameters() if "patch_embed" not in name}
    theirs = {name for name, _ in models.build_shapes(patch).named_parameters() if "patch_embed" not in name}
    assert ours == theirs
    assert analyse(spec).tokens == analyse(patch).tokens == 50
    assert analyse(spec).convolution_share > 0.5 > analyse(patch).convolution_share


# -- what is legal


@pytest.mark.parametrize(("image_size", "smallest"), [(8, 2), (28, 2), (64, 2), (128, 4)])
def test_maps_are_never_of_one_position_nor_above_64(image_size, smallest):
    space = backbone_space(Task(image_size, 1, 10), **{key: [value] for key, value in ENCODER.items()})
    sides = {int(analyse(spec).tokens ** 0.5) for spec in every_spec(space)}
    assert min(sides) == smallest
    assert max(sides) <= 64


def test_every_legal_cut_is_another_network():
    """Of six pairs of a name and a stage, another name's network is the same."""
    known = [*KNOWN, "resnet101", "mobilenetv3_small_050"]
    task = Task(64, 3, 10)
    choices = {key: [value] for key, value in ENCODER.items()}
    specs = every_spec(backbone_space(task, known, backbone=known, stage=list(range(5)), **choices))
    assert len(specs) == 7 * 5 + 3 * 4 - 6
    built = {repr(models.build_shapes(spec)) for spec in specs}
    assert len(built) == len(specs)


def test_networks_that_are_the_same_up_to_a_stage_are_cut_there_once():
    for beyond in ((), ("resnet18", "resnet34", "resnet10t", "resnet14t")):
        family = Backbone({name: models.features(name) for name in beyond}) if beyond else Backbone()
        task = Task(28, 1, 10)
        check = family.rules(task)[0].check
        assert check({"backbone": "resnet18", "stage": 0}) is None
        assert "same network as resnet18 up to stage 0" in str(check({"backbone": "resnet34", "stage": 0}))
        assert "same network as resnet10t" in str(check({"backbone": "resnet14t", "stage": 0}))
        assert check({"backbone": "resnet34", "stage": 1}) is None
    alone = Backbone({"resnet34": KNOWN["resnet34"]}).rules(Task(28, 1, 10))[0].check
    assert alone({"backbone": "resnet34", "stage": 0}) is None


@pytest.mark.parametrize(
    ("one", "other", "stage"), [("resnet18", "resnet34", 0), ("resnet50", "resnet101", 2)]
)
def test_what_is_told_to_be_the_same_network_answers_the_same(filled, one, other, stage):
    image = torch.randn(1, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    specs = [
        Backbone().spec(Task(28, 1, 10), {"backbone": name, "stage": stage, **ENCODER})
        for name in (one, other)
    ]
    assert models.features(one).cut(stage, 28, 1) == models.features(other).cut(stage, 28, 1)
    with torch.no_grad():
        first, second = (filled(spec)(image) for spec in specs)
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("beyond", "overrides", "says"),
    [
        ((), {"backbone": ["resnet19"]}, "backbone.backbone: 'resnet19' is not legal; legal: resnet10t"),
        ((), {"stage": [5]}, "backbone.stage: 5 is not legal; legal: 0 to 4"),
        (
            (),
            {"backbone": ["convnext_atto"], "stage": [1, 4]},
            "backbone.stage: 4 .* it has 0 to 3; legal: 1",
        ),
        ((), {"backbone": ["resnet18"], "stage": [3, 4]}, "stage: 4 .* 1 x 1 tokens of 28 px images"),
        ((), {"backbone": ["resnet34"], "stage": [0]}, "same network as resnet18 up to stage 0"),
        (["vgg11"], {"image_size": [96], "stage": [0]}, "96 x 96 tokens of 96 px .* not 2 x 2 to 64 x 64"),
        (["hrnet_w18_small"], {"image_size": [64], "stage": [1]}, "leaves layers behind it that do nothing"),
        (
            ["inception_v3"],
            {"stage": [4]},
            "inception_v3 cannot be cut after stage 4: it does not run on 28 px",
        ),
        (["vit_tiny_patch16_224"], {"image_size": [40]}, "patches of 16 px do not divide 40 px"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(beyond, overrides, says):
    with pytest.raises(SpaceError, match=says) as refused:
        backbone_space(Task(28, 1, 10), beyond, **{"backbone": list(beyond) or list(KNOWN), **overrides})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("resnet19", "is not an entry point of timm .*; timm has resnet18"),
        ("resnet18.a1_in1k", "is not an entry point of timm .*; timm has resnet18"),
        ("hf-hub:timm/resnet18.a1_in1k", "is not an entry point of timm"),
        ("local-dir:/tmp/model", "is not an entry point of timm"),
        ("paretovit_resnet", "is not an entry point of timm"),
        ("paretovit_backbone_vit", "is not an entry point of timm"),
        ("gluon_resnet18_v1b", "is an old name in timm; the present one is resnet18"),
        ("hardcorenas_a", "has no feature levels in timm"),
    ],
)
def test_a_name_that_is_no_network_to_cut_is_refused_with_what_is_near(name, says):
    with pytest.raises(ValueError, match=says):
        models.features(name)


@pytest.mark.parametrize("name", ["hf-hub:timm/resnet18.a1_in1k", "resnet18.a1_in1k", "/tmp/model", ""])
def test_the_entry_point_builds_what_timm_names_and_fetches_nothing(name):
    spec = ArchSpec(MODEL, {"backbone": name, "stage": 1, "img_size": 32}, 32)
    with pytest.raises(ValueError, match="is not an entry point of timm"):
        models.build(spec)


def test_timm_s_own_hybrids_are_no_points_of_it():
    """Their ResNets are of timm's second version with a stem of its own, which no name of timm builds alone."""
    with pytest.raises(SpaceError, match="unknown name"):
        named_space("vit_small_r26_s32_224")


# -- training


@pytest.mark.parametrize("name", ["resnet10t", "resnet18", "convnext_atto", *BEYOND[:1]])
def test_every_part_learns_from_small_grey_images_at_every_stage(name):
    torch.manual_seed(0)
    task = Task(28, 1, 10)
    family = Backbone({name: models.features(name)})
    stages = [
        stage for stage in range(5) if not family.rules(task)[0].check({"backbone": name, "stage": stage})
    ]
    assert len(stages) >= 2
    for stage in stages:
        network = models.build(family.spec(task, {"backbone": name, "stage": stage, **ENCODER}), 0.1)
        scores = network(torch.randn(4, 1, 28, 28))
        torch.nn.functional.cross_entropy(scores, torch.arange(4)).backward()
        gradients = [value.grad for value in network.parameters()]
        assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


def test_costs_are_whole_numbers():
    assert all(type(number) is int for number in astuple(models.features("resnet10t").cut(0, 28, 1).cost))
