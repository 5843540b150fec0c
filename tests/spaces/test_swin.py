"""Facts of Swin transformers, and maps that windows do not divide."""

from __future__ import annotations

import random

import pytest

from spaces.analysis import analyse
from spaces.registry import make_space, named_space
from spaces.spec import Task
from spaces.swin import maps, padded

ONE = {
    "patch_size": 4,
    "window": 7,
    "num_stages": 2,
    "depth_1": 2,
    "depth_2": 2,
    "heads": 1,
    "head_width": 32,
    "mlp_ratio": 2,
}


def one_swin(image_size, **values):
    overrides = {"swin": {key: [value] for key, value in {**ONE, **values}.items()}}
    space = make_space(Task(image_size, 3, 10), families=["swin"], overrides=overrides)
    return space.spec(space.sample(random.Random(0)))


@pytest.mark.parametrize(
    ("name", "params"),
    [("swin_tiny_patch4_window7_224", 28_288_354), ("swin_base_patch4_window7_224", 87_768_224)],
)
def test_the_published_models_are_points_with_their_published_parameters(name, params):
    space = named_space(name)
    assert analyse(space.spec(space.sample(random.Random(0)))).params == params


def test_maps_halve_rounding_up_and_windows_pad_them():
    assert maps(14, 3) == [14, 7, 4]
    assert padded(14, 4) == 16
    assert padded(14, 7) == 14


@pytest.mark.parametrize(("image_size", "window"), [(28, 4), (44, 4), (40, 7), (44, 7), (68, 6), (56, 7)])
def test_windows_that_do_not_divide_the_map_are_counted_with_their_padding(count_built, image_size, window):
    spec = one_swin(image_size, window=window)
    assert count_built(spec).flops == analyse(spec).flops


def test_windows_that_divide_the_map_make_attention_linear_in_the_pixels():
    def scores(image_size):
        deep, shallow = (analyse(one_swin(image_size, depth_1=depth)) for depth in (2, 1))
        tokens, width = deep.tokens, 32
        return deep.flops - shallow.flops - tokens * 2 * (4 + 2 * 2) * width * width

    assert scores(112) == 4 * scores(56)


def test_a_stage_past_the_number_of_stages_is_no_dimension():
    space = make_space(Task(32, 3, 10), families=["swin"])
    rng = random.Random(0)
    for _ in range(200):
        point = space.sample(rng)
        assert ("swin.depth_3" in point) == (point["swin.num_stages"] == 3)
        assert len(space.spec(point).args["depths"]) == point["swin.num_stages"]
