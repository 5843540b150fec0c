"""Stages of convolution, attention, or both."""

from __future__ import annotations

import random
from itertools import product
from unittest.mock import patch

import pytest
import timm
import torch
from timm.layers.drop import DropPath
from torch.nn import functional

from spaces import coatnet, models
from spaces.analysis import analyse, knows
from spaces.registry import SpaceError, make_space, named_space
from spaces.spec import ArchSpec, Task

ONE = {
    "stride": 2,
    "stem_width": 16,
    "depth_1": 1,
    "depth_2": 2,
    "heads": 2,
    "head_width": 16,
    "mlp_ratio": 2,
}
WINDOWS = {28: (7, 7), 31: (4, 2), 13: (7, 2), 32: (16, 4)}
"""Image side -> windows of two stages; maps have sides of 14 and 7, 16 and 8, 7 and 4, 16 and 8."""


def networks(image_size, channels=3, **values):
    """The space of one family whose dimensions have these values."""
    overrides = {"coatnet": {key: [value] for key, value in {**ONE, **values}.items()}}
    return make_space(Task(image_size, channels, 10), families=["coatnet"], overrides=overrides)


def one_coatnet(image_size, kinds, channels=3, windows=(), **values):
    own = {"num_stages": len(kinds)}
    for stage, kind in enumerate(kinds, start=1):
        own |= {f"kind_{stage}": kind}
        own |= {f"depth_{stage}": 1} if stage > 2 else {}
        own |= {f"expand_{stage}": 2} if kind != "attention" else {}
        own |= {f"window_{stage}": windows[stage - 1]} if kind == "maxvit" else {}
    space = networks(image_size, channels, **own, **values)
    assert space.size() == 1
    return space.spec(space.sample(random.Random(0)))


def figures(counted):
    return (counted.params, counted.flops, counted.activations)


@pytest.mark.parametrize(
    ("name", "params", "tokens"),
    [
        ("coatnet_0_224", 25_036_820, 196),
        ("coatnet_2_224", 74_684_744, 196),
        ("coatnet_4_224", 275_425_288, 196),
    ],
)
def test_the_published_models_are_points_with_their_published_parameters(count_built, name, params, tokens):
    space = named_space(name)
    spec = space.spec(space.sample(random.Random(0)))
    known = analyse(spec)
    assert (known.params, known.tokens) == (params, tokens)
    assert count_built(spec, device="meta").flops == known.flops
    assert analyse(ArchSpec(name, {}, 224)) == known


def test_a_published_point_answers_as_timm_s_own_network_with_the_same_weights(filled):
    space = named_space("coatnet_0_224", Task(64, 3, 10))
    ours = filled(space.spec(space.sample(random.Random(0))))
    theirs = timm.create_model("coatnet_0_224", img_size=64, num_classes=10).eval()
    theirs.load_state_dict(ours.state_dict())
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(ours(images), theirs(images))


def test_stages_of_maxvit_have_the_parameters_of_maxvit_but_for_the_biases_of_its_stem():
    depths = {"depth_1": 2, "depth_2": 2, "depth_3": 5, "depth_4": 2}
    expands = {f"expand_{stage}": 4 for stage in range(1, 5)}
    shape = {"stride": 4, "stem_width": 64, "num_stages": 4, "head_width": 32, "mlp_ratio": 4}
    kinds = {f"kind_{stage}": "maxvit" for stage in range(1, 5)}
    windows = {f"window_{stage}": 7 for stage in range(1, 5)}
    space = networks(224, 3, **{**shape, **depths, **expands, **kinds, **windows})
    known = analyse(space.spec(space.sample(random.Random(0))))
    theirs = models.count(ArchSpec("maxvit_tiny_tf_224", {"num_classes": 10}, 224))
    assert known.params == theirs - 2 * 64
    assert (known.depth, known.sparse_share, known.tokens) == (22, 18 / 22, 56 * 56)


@pytest.mark.parametrize("image_size", WINDOWS)
@pytest.mark.parametrize(
    "kinds", [kinds for kinds in product(coatnet.KINDS, repeat=2) if kinds != ("conv",) * 2]
)
def test_every_order_of_kinds_is_counted_on_maps_of_any_side(count_built, kinds, image_size):
    spec = one_coatnet(image_size, kinds, windows=WINDOWS[image_size])
    assert figures(count_built(spec)) == figures(analyse(spec))


@pytest.mark.parametrize(
    ("image_size", "values"),
    [
        (9, {"stride": 1}),
        (27, {"stride": 4}),
        (57, {"stride": 8}),
        (32, {"stride": 1, "stem_width": 32}),
        (32, {"stride": 8, "stem_width": 32}),
        (32, {"stem_width": 4, "head_width": 8, "heads": 1}),
    ],
)
@pytest.mark.parametrize("kinds", [("conv", "attention"), ("attention", "conv")])
def test_stem_and_first_stage_share_the_stride_out(count_built, kinds, image_size, values):
    spec = one_coatnet(image_size, kinds, **values)
    built, known = count_built(spec), analyse(spec)
    first = kinds.index("attention")
    side = -(-image_size // values.get("stride", 2))
    assert figures(built) == figures(known)
    assert known.tokens == coatnet.maps(side, 2)[first] ** 2


def test_blocks_of_attention_are_counted_by_what_they_see():
    alike = {"depth_1": 2, "depth_2": 1, "stride": 4}
    mixed = analyse(one_coatnet(32, ("maxvit", "attention"), windows=(4,), **alike))
    assert (mixed.depth, mixed.sparse_share) == (5, 4 / 5)
    assert mixed.width == (4 * 32 + 64) / 5
    assert mixed.head_width == 16
    whole = analyse(one_coatnet(32, ("maxvit", "attention"), windows=(8,), **alike))
    assert whole.sparse_share == 0


def test_scores_are_never_stored_since_every_block_with_attention_fuses_them():
    spec = one_coatnet(32, ("maxvit", "attention"), windows=(4,))
    known = analyse(spec)
    fused = functional.scaled_dot_product_attention
    with (
        torch.no_grad(),
        patch("torch.nn.functional.scaled_dot_product_attention", side_effect=fused) as calls,
    ):
        models.build(spec)(torch.zeros(1, 3, 32, 32))
    assert calls.call_count == known.depth
    assert known.unstored == 2 * 2 * 16 * 16 * 4 * 4 + 2 * 4 * 8**4


def test_a_network_of_attention_alone_has_no_convolutions_but_its_stem_s():
    space = networks(32, num_stages=2, kind_1="attention", kind_2="attention")
    spec = space.spec(space.sample(random.Random(0)))
    stem = 2 * 16 * 16 * 9 * (3 * 16 + 16 * 16)
    assert analyse(spec).convolution_share == stem / analyse(spec).flops


def test_stochastic_depth_grows_from_block_to_block_over_all_stages():
    spec = one_coatnet(32, ("conv", "maxvit", "attention"), windows=(0, 4))
    drops = [part.drop_prob for part in models.build(spec, 0.3).modules() if isinstance(part, DropPath)]
    # Block by block: of the MBConv in each maxvit and what attends in it, and two for attention and MLP.
    assert drops == pytest.approx([0.1] * 5 + [0.2] * 5 + [0.3] * 2)
    assert not [part for part in models.build(spec).modules() if isinstance(part, DropPath)]


@pytest.mark.parametrize("stride", [2, 4])
@pytest.mark.parametrize("kinds", [("conv", "attention"), ("maxvit", "conv"), ("attention", "maxvit")])
def test_grey_images_of_28_pixels_reach_every_weight(kinds, stride):
    windows = {2: (7, 7), 4: (7, 2)}[stride]
    network = models.build(one_coatnet(28, kinds, 1, windows=windows, stride=stride), 0.1)
    network(torch.randn(4, 1, 28, 28)).sum().backward()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in network.parameters())


def test_a_grid_reaches_over_the_map_and_a_window_does_not(filled):
    network = filled(one_coatnet(32, ("maxvit", "conv"), windows=(4,), depth_1=1))
    block = network.stages[0].blocks[0]
    with torch.no_grad():
        maps = torch.randn(1, 16, 16, 32, generator=torch.Generator().manual_seed(0))
        changed = maps.clone()
        changed[0, 0, 0, 0] += 1
        reached = {
            name: (part(maps) - part(changed)).abs().amax(-1)[0] > 1e-4
            for name, part in (("window", block.attn_block), ("grid", block.attn_grid))
        }
    assert reached["window"].nonzero().amax(0).tolist() == [3, 3]
    assert {tuple(place) for place in reached["grid"].nonzero().tolist()} == set(
        product(range(0, 16, 4), repeat=2)
    )


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"stride": [3]}, "coatnet.stride: 3 is not legal; legal: 1, 2, 4, 8"),
        ({"stride": [8], "num_stages": [3]}, "a first map of 4 x 4 leaves one position after 3 stages"),
        (
            {"num_stages": [2], "kind_1": ["conv"], "kind_2": ["conv"]},
            "none of 2 stages has attention: make one attention or maxvit",
        ),
        (
            {"stride": [4], "kind_1": ["maxvit"], "window_1": [3]},
            "window 3 does not divide the map of 8 x 8 in stage 1",
        ),
        (
            {"stride": [8], "num_stages": [2], "kind_2": ["maxvit"]},
            "a map of 2 x 2 in stage 2 is too small for maxvit: 4 x 4",
        ),
        (
            {f"window_{stage}": {"low": 2, "high": 64} for stage in (1, 2, 3, 4)},
            "window 3 does not divide the map of 16 x 16 in stage 1; legal: 2, 4, 8, 16",
        ),
        ({"kind_1": ["conv"], "window_1": [4]}, "window_1: has no effect: it needs kind_1 to be maxvit"),
        (
            {"kind_2": ["attention"], "expand_2": [4]},
            "expand_2: has no effect: it needs kind_2 to be conv or maxvit",
        ),
        ({"num_stages": [2], "kind_3": ["conv"]}, "kind_3: has no effect: it needs num_stages to be 3 or 4"),
        ({"head_width": [12]}, "coatnet.head_width: 12 is not legal; legal: 8 to 128 in steps of 8"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(values, says):
    with pytest.raises(SpaceError) as refused:
        make_space(Task(32, 3, 10), families=["coatnet"], overrides={"coatnet": values})
    assert says in str(refused.value)


def test_attention_over_very_large_maps_is_refused():
    with pytest.raises(SpaceError, match="attention over 128 x 128 positions in stage 1; at most 64 x 64"):
        networks(256, num_stages=2, kind_1="attention")
    assert networks(256, num_stages=2, kind_1="conv", kind_2="attention").size() > 0


def test_every_drawn_network_has_attention_somewhere():
    space, rng = make_space(Task(28, 1, 10), families=["coatnet"]), random.Random(0)
    for _ in range(500):
        spec = space.spec(space.sample(rng))
        assert set(spec.args["kinds"]) != {"conv"}


def test_a_window_of_a_stage_that_is_not_there_is_no_dimension_even_where_its_kind_is_given():
    space = networks(32, stride=2, kind_3="maxvit")
    points = [space.sample(random.Random(seed)) for seed in range(50)]
    assert {point["coatnet.num_stages"] for point in points} == {2, 3}
    for point in points:
        assert ("coatnet.window_3" in point) == (point["coatnet.num_stages"] == 3)
        assert space.illegal(point) is None


def test_settings_that_build_nothing_are_refused():
    spec = one_coatnet(32, ("conv", "attention"))
    for changed in ({"kinds": ["conv", "pool"]}, {"stem_stride": 3}, {"stage_stride": 4}):
        with pytest.raises(ValueError, match="is none of"):
            models.build(ArchSpec(spec.model, {**spec.args, **changed}, 32))
    assert knows(spec)
    assert not knows(ArchSpec(spec.model, {**spec.args, "kinds": ["conv", "pool"]}, 32))
    assert not knows(ArchSpec(spec.model, {**spec.args, "depths": [1]}, 32))
