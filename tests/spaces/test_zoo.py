"""The family of pretrained networks."""

from __future__ import annotations

import random

import pytest
import timm
import torch

from spaces import models, zoo
from spaces.analysis import analyse, knows
from spaces.registry import SpaceError, make_space
from spaces.spec import ArchSpec, Task

TASK = Task(image_size=28, channels=1, num_classes=10)
DEIT, RESNET = "deit_tiny_patch16_224.fb_in1k", "resnet18.a1_in1k"
SWIN, PATCH_32 = "swin_tiny_patch4_window7_224.ms_in1k", "vit_small_patch32_224.augreg_in21k_ft_in1k"


def zoo_space(beyond=(), **overrides):
    known = zoo.Zoo({**zoo.WELL_KNOWN, **{name: models.pretrained(name) for name in beyond}})
    return make_space(TASK, families=["zoo"], overrides={"zoo": overrides}, informed=[known])


def draw(space, count=500):
    rng = random.Random(0)
    return [space.sample(rng) for _ in range(count)]


def every_spec(space):
    return list({spec.digest: spec for spec in map(space.spec, draw(space, 2000))}.values())


@pytest.mark.parametrize("name", zoo.WELL_KNOWN)
def test_timm_has_weights_for_every_well_known_name(name):
    assert models.has_pretrained(name)


@pytest.mark.parametrize("name", zoo.WELL_KNOWN)
def test_every_point_builds_and_classifies_and_has_the_cost_that_is_said(count_built, name):
    network = zoo.WELL_KNOWN[name]
    sizes = [size for size in (32, 96, 100) if network.refuses(size) is None]
    blocks = {} if network.depth is None else {"blocks": [5, network.depth]}
    space = zoo_space(model=[name], image_size=sizes, **blocks)
    specs = every_spec(space)
    assert len(specs) == space.size()
    for spec in specs:
        built = count_built(spec, device="meta")
        assert built.output == (1, 10)
        if knows(spec):
            assert (built.params, built.flops) == (analyse(spec).params, analyse(spec).flops)


def test_image_sizes_that_do_not_fit_a_network_are_never_drawn_with_it():
    space = zoo_space(model=[DEIT, PATCH_32, SWIN, RESNET], image_size=[32, 48, 64, 70, 96])
    drawn = {(point["zoo.model"], point["zoo.image_size"]) for point in draw(space, 3000)}
    assert drawn == {
        *((DEIT, size) for size in (32, 48, 64, 96)),
        *((PATCH_32, size) for size in (64, 96)),
        *((SWIN, size) for size in (48, 96)),
        *((RESNET, size) for size in (32, 48, 64, 70, 96)),
    }


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"model": [DEIT], "image_size": [70]}, "patches of 16 px do not divide 70 px"),
        ({"model": [PATCH_32], "image_size": [32, 64]}, "zoo.image_size: 32 is not legal: .* is one patch"),
        ({"model": [SWIN], "image_size": [64]}, "at 64 px, window 7 would pad"),
        ({"model": [RESNET], "image_size": [24]}, "24 px is less than the 32 px"),
        ({"model": [DEIT, SWIN], "image_size": [64]}, f"zoo.model: {SWIN} is not legal: .*window 7"),
        ({"image_size": [2000]}, "zoo.image_size: 2000 is not legal; legal: 16 to 1024"),
        ({"model": [DEIT], "blocks": [12, 13]}, f"13 is not legal: {DEIT} has 12 blocks, not 13"),
        ({"model": [RESNET], "blocks": [2]}, "zoo.blocks: has no effect: it needs model to be"),
        ({"model": ["resnet19.a1_in1k"]}, "zoo.model: 'resnet19.a1_in1k' is not legal"),
        ({"modell": [DEIT]}, "zoo: unknown name 'modell'; nearest: model"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(overrides, says):
    with pytest.raises(SpaceError, match=says):
        zoo_space(**overrides)


def test_a_network_is_cut_from_the_front_and_the_whole_one_s_weights_fit():
    point = {"family": "zoo", "zoo.model": DEIT, "zoo.image_size": 64}
    space = zoo_space(model=[DEIT], image_size=[64], blocks=[3, 12])
    cut, whole = (models.build(space.spec({**point, "zoo.blocks": blocks})) for blocks in (3, 12))
    ours, all_of_it = cut.state_dict(), whole.state_dict()
    assert {name: value.shape for name, value in ours.items()}.items() <= {
        name: value.shape for name, value in all_of_it.items()
    }.items()
    gone = {name.split(".")[1] for name in all_of_it.keys() - ours.keys()}
    assert gone == {str(block) for block in range(3, 12)}


def test_blocks_belong_to_plain_transformers_alone():
    for point in draw(zoo_space()):
        assert ("zoo.blocks" in point) == point["zoo.model"].startswith("deit")


def test_the_weights_do_not_change_what_is_built():
    for spec in every_spec(zoo_space(model=[DEIT, RESNET])):
        with torch.device("meta"):
            plain = timm.create_model(spec.model, **spec.args)
            named = models.build(spec)
        assert [value.shape for value in plain.parameters()] == [value.shape for value in named.parameters()]


def test_the_same_network_from_weights_and_from_none_are_two_candidates():
    vit = make_space(
        Task(64, 1, 10),
        families=["vit"],
        overrides={
            "vit": {
                "patch_size": 16,
                "depth": 12,
                "heads": 3,
                "head_width": 64,
                "mlp_ratio": 4,
                "pooling": "class_token",
            }
        },
    )
    (fresh,) = every_spec(vit)
    pretrained = zoo.Zoo().whole(Task(64, 1, 10), DEIT, 64)
    assert analyse(fresh) == analyse(pretrained)
    assert fresh.digest != pretrained.digest
    unnamed = ArchSpec(pretrained.model, pretrained.args, pretrained.image_size)
    assert unnamed.digest != pretrained.digest


def test_points_stay_legal_when_they_are_varied_and_crossed():
    everything = list(zoo.WELL_KNOWN)
    space = zoo_space(model=everything, image_size={"low": 32, "high": 256, "step": 16}, blocks=[2, 7, 12])
    rng = random.Random(1)
    for one, other in zip(draw(space, 100), reversed(draw(space, 100)), strict=True):
        for point in (space.crossover(one, other, rng), *space.neighbours(one)):
            assert space.illegal(point) is None


def test_a_preset_does_not_search_it_unless_it_is_named():
    assert "zoo" not in make_space(TASK).families
    assert make_space(TASK, families=["zoo", "vit"]).families == ("zoo", "vit")
    with pytest.raises(SpaceError, match=r"zoo: .*; give space.families: .*, zoo\]"):
        make_space(TASK, overrides={"zoo": {"blocks": [3]}})


@pytest.mark.parametrize(
    ("image_size", "sizes"),
    [(8, (64, 96)), (64, (64, 96)), (96, (64, 96, 160)), (128, (64, 96, 128, 192)), (224, (128, 160, 224))],
)
def test_the_usual_image_sizes_follow_the_images_and_are_never_below_64(image_size, sizes):
    assert zoo.usual_image_sizes(image_size) == sizes
    space = make_space(Task(image_size, 3, 10), families=["zoo"])
    assert {point["zoo.image_size"] for point in draw(space)} == set(sizes)
    assert {point["zoo.model"] for point in draw(space)} == set(zoo.DEFAULT_MODELS)


@pytest.mark.parametrize(
    ("name", "takes_size", "legal"),
    [
        ("deit3_small_patch16_224.fb_in1k", True, [64, 96]),
        ("vit_small_patch14_dinov2.lvd142m", True, [70]),
        ("maxvit_nano_rw_256.sw_in1k", True, [64, 96]),
        ("resnet26.bt_in1k", False, [64, 70, 96]),
        ("inception_v3.tv_in1k", False, [96]),
    ],
)
def test_other_networks_of_timm_are_used_whole_at_sizes_at_which_they_run(
    count_built, name, takes_size, legal
):
    found = models.pretrained(name)
    assert (found.depth, found.takes_size) == (None, takes_size)
    specs = every_spec(zoo_space([name], model=[name, RESNET], image_size=[64, 70, 96]))
    own = [spec for spec in specs if spec.weights == name]
    assert sorted(spec.image_size for spec in own) == legal
    for spec in own:
        assert not knows(spec)
        assert count_built(spec, device="meta").output == (1, 10)


def test_what_timm_does_not_know_is_said():
    with pytest.raises(ValueError, match="'resnet19' is not an entry point of timm"):
        models.pretrained("resnet19.a1_in1k")
    assert not models.has_pretrained("resnet18")
    assert not models.has_pretrained("resnet18.mine")
    assert "deit_tiny_patch16_224.fb_in1k" in models.nearest_pretrained("deit_tny_patch16_224.fb_in1k")
    assert set(models.nearest_pretrained("resnet18.mine")) <= set(timm.list_pretrained("resnet18.*"))
