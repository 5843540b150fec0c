"""Pooled stages."""

from __future__ import annotations

import random

import pytest

from spaces.analysis import analyse
from spaces.registry import SpaceError, make_space, named_space
from spaces.spec import Task

ONE = {
    "stride": 4,
    "overlap": 1,
    "num_stages": 2,
    "depth_1": 1,
    "depth_2": 2,
    "heads": 2,
    "head_width": 16,
    "mlp_ratio": 2,
}


def one_pit(image_size, **values):
    overrides = {"pit": {key: [value] for key, value in {**ONE, **values}.items()}}
    space = make_space(Task(image_size, 3, 10), families=["pit"], overrides=overrides)
    return space.spec(space.sample(random.Random(0)))


@pytest.mark.parametrize(
    ("name", "params", "tokens"),
    [("pit_ti_224", 4_847_272, 730), ("pit_s_224", 23_461_912, 730), ("pit_b_224", 73_764_840, 962)],
)
def test_the_published_models_are_points_with_their_published_parameters(count_built, name, params, tokens):
    space = named_space(name)
    spec = space.spec(space.sample(random.Random(0)))
    known = analyse(spec)
    assert (known.params, known.tokens) == (params, tokens)
    assert count_built(spec, device="meta").flops == known.flops


@pytest.mark.parametrize(
    ("image_size", "values"),
    [
        (32, {"overlap": 2}),
        (28, {"stride": 2, "overlap": 3, "num_stages": 3, "depth_3": 1}),
        (36, {"num_stages": 4, "depth_3": 1, "depth_4": 2}),
        (224, {"stride": 16, "num_stages": 3, "depth_3": 1}),
    ],
)
def test_maps_of_any_side_and_overlapping_patches_are_counted(count_built, image_size, values):
    spec = one_pit(image_size, **values)
    built, known = count_built(spec), analyse(spec)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)


@pytest.mark.parametrize("overlap", [1, 2, 3])
def test_patches_reach_the_last_pixel_of_the_image(overlap):
    args = one_pit(32, overlap=overlap).args
    assert (32 - args["patch_size"]) % args["stride"] == 0
    assert args["patch_size"] == 4 * overlap


def test_width_and_heads_double_from_stage_to_stage():
    args = one_pit(64, num_stages=3, depth_3=1).args
    assert args["heads"] == [2, 4, 8]
    assert args["base_dims"] == [16, 16, 16]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"stride": [8], "num_stages": [3]}, "4 x 4 patches leave less than 2 x 2 after 3 stages"),
        (
            {"stride": [8], "overlap": [3], "num_stages": [2]},
            "2 x 2 patches leave less than 2 x 2 after 2 stages",
        ),
        ({"stride": [5]}, "pit.stride: 5 is not legal"),
        ({"num_stages": [2], "depth_3": [1]}, "pit.depth_3: has no effect: it needs num_stages"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(values, says):
    with pytest.raises(SpaceError) as refused:
        make_space(Task(32, 3, 10), families=["pit"], overrides={"pit": values})
    assert says in str(refused.value)
