"""Blocks that see a part of the map."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaces import models
from spaces.analysis import analyse
from spaces.registry import SpaceError, make_space
from spaces.spec import ArchSpec, Task
from spaces.windowed import PLACEMENTS, POSITIONS, global_indexes

EVERYTHING = {
    "positions": list(POSITIONS),
    "qk_norm": [False, True],
    "layer_scale": [False, True],
    "qkv_bias": [False, True],
}
SPACES = [
    make_space(Task(size, 3, 10), families=["windowed"], overrides={"windowed": EVERYTHING})
    for size in (12, 28, 32)
]
ONE = {
    "patch_size": 4,
    "depth": 1,
    "heads": 2,
    "head_width": 16,
    "mlp_ratio": 1,
    "attention": "window",
    "window": 4,
    "global_blocks": 0,
}


def one_windowed(image_size, **values):
    chosen = {**ONE, **values}
    if chosen["attention"] == "subsampled":
        del chosen["window"]
    overrides = {"windowed": {key: [value] for key, value in chosen.items()}}
    space = make_space(Task(image_size, 3, 10), families=["windowed"], overrides=overrides)
    return space.spec(space.sample(random.Random(0)))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(space=st.sampled_from(SPACES), seed=st.integers(0, 2**32 - 1))
def test_every_point_of_every_dimension_builds_and_costs_what_the_closed_form_says(count_built, space, seed):
    spec = space.spec(space.sample(random.Random(seed)))
    built, known = count_built(spec), analyse(spec)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)
    assert built.output == (1, 10)
    assert built.finite
    assert ArchSpec.from_dict(spec.to_dict()).digest == spec.digest


def test_timm_s_own_model_costs_what_the_closed_form_says(count_built):
    spec = ArchSpec("samvit_base_patch16_224", {"in_chans": 3, "num_classes": 1000}, 224)
    built, known = count_built(spec, device="meta"), analyse(spec)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)


@pytest.mark.parametrize("positions", POSITIONS)
def test_windows_are_those_of_timm(filled, positions):
    spec = one_windowed(28, depth=3, global_blocks=1, global_placement="last", positions=positions)
    own = filled(spec)
    timm_s = models.build(ArchSpec("samvit_base_patch16_224", spec.args, spec.image_size)).eval()
    timm_s.load_state_dict(own.state_dict())
    image = torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(own(image), timm_s(image), atol=1e-4)


def seen_by(model, row, column, side=8):
    """The patches whose change reaches the patch at a row and a column through the first block."""
    tokens = torch.randn(1, side, side, model.embed_dim, generator=torch.Generator().manual_seed(1))
    tokens.requires_grad_()
    model.blocks[0](tokens)[0, row, column].sum().backward()
    changes = tokens.grad[0].abs().sum(-1) > 0
    return {(int(row), int(column)) for row, column in changes.nonzero()}


def test_a_window_sees_itself_alone(filled):
    assert seen_by(filled(one_windowed(32)), 5, 2) == {(r, c) for r in range(4, 8) for c in range(4)}


def test_a_grid_sees_patches_spread_evenly_over_the_map(filled):
    seen = seen_by(filled(one_windowed(32, attention="grid", window=2)), 5, 2)
    assert seen == {(r, c) for r in (1, 5) for c in (2, 6)}


@pytest.mark.parametrize("kind", ["window", "grid", "subsampled"])
def test_a_global_block_sees_the_whole_map(filled, kind):
    further = {"kv_stride": 2} if kind == "subsampled" else {}
    spec = one_windowed(32, attention=kind, depth=2, global_blocks=1, global_placement="first", **further)
    assert len(seen_by(filled(spec), 5, 2)) == 64


def test_subsampled_keys_see_the_whole_map_and_cost_less(filled):
    spec = one_windowed(32, attention="subsampled", kv_stride=2)
    assert len(seen_by(filled(spec), 5, 2)) == 64
    whole = one_windowed(32, depth=2, global_blocks=1, global_placement="last")
    assert analyse(spec).activations < analyse(whole).activations / 2


def test_averages_over_squares_of_equal_patches_change_nothing(filled):
    """Attention to four equal keys is attention to one of them."""
    sparse = filled(one_windowed(32, attention="subsampled", kv_stride=2, positions="none")).blocks[0].attn
    specs = one_windowed(32, depth=2, global_blocks=1, global_placement="first", positions="none")
    whole = models.build(specs).eval().blocks[0].attn
    whole.load_state_dict(sparse.state_dict())
    coarse = torch.randn(2, 4, 4, 32, generator=torch.Generator().manual_seed(0))
    tokens = coarse.repeat_interleave(2, 1).repeat_interleave(2, 2)
    with torch.no_grad():
        assert torch.allclose(sparse(tokens), whole(tokens), atol=1e-5)


@pytest.mark.parametrize("positions", ["relative", "learned"])
@pytest.mark.parametrize("kind", ["window", "grid"])
def test_doubling_the_resolution_multiplies_score_flops_by_4_in_windows_that_divide_the_map(kind, positions):
    def scores(image_size):
        spec = one_windowed(image_size, attention=kind, positions=positions)
        tokens, width = analyse(spec).tokens, 32
        dense = tokens * 2 * (4 + 2) * width * width + tokens * 2 * 4 * 4 * 3 * width + 2 * width * 10
        return analyse(spec).flops - dense

    assert scores(32) > 0
    assert scores(64) == 4 * scores(32)


def test_global_blocks_stand_where_they_are_placed():
    assert global_indexes(12, 4, "even") == [2, 5, 8, 11]
    assert global_indexes(12, 4, "first") == [0, 1, 2, 3]
    assert global_indexes(12, 4, "last") == [8, 9, 10, 11]
    assert global_indexes(5, 2, "even") == [2, 4]


def test_one_set_of_global_blocks_is_one_point():
    found = {}
    rules = make_space(Task(32, 3, 10), families=["windowed"])
    for depth, count, placement in itertools.product(range(1, 7), range(1, 4), PLACEMENTS):
        point = {**rules.sample(random.Random(0)), "windowed.depth": depth, "windowed.global_blocks": count}
        if rules.illegal({**point, "windowed.global_placement": placement}) is None:
            found.setdefault((depth, tuple(global_indexes(depth, count, placement))), []).append(placement)
    assert found
    assert all(len(placements) == 1 for placements in found.values())
    assert found[4, (1, 3)] == ["even"]
    assert found[4, (3,)] == ["last"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"window": [8]}, "window 8 is not smaller than the map of 8 x 8 patches"),
        ({"attention": ["grid"], "window": [3]}, "a grid of 3 x 3 does not divide the map of 8 x 8 patches"),
        ({"attention": ["window"], "window": [5]}, "window 5 would pad the map from 8 to 10 patches a side"),
        (
            {"attention": ["window"], "kv_stride": [2]},
            "kv_stride: has no effect: it needs attention to be subsampled",
        ),
        ({"attention": ["subsampled"], "kv_stride": [8]}, "kv_stride 8 leaves one key of 8 x 8 patches"),
        ({"depth": [2], "global_blocks": [2]}, "2 global blocks leave no other of 2"),
        (
            {"depth": [4], "global_blocks": [1], "global_placement": ["even"]},
            "1 of 4 blocks placed even are the last ones",
        ),
        ({"attention": ["subsampled"], "positions": ["rotary"]}, "subsampled keys have none"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(values, says):
    with pytest.raises(SpaceError) as refused:
        make_space(
            Task(32, 3, 10), families=["windowed"], overrides={"windowed": {"patch_size": [4], **values}}
        )
    assert says in str(refused.value)
