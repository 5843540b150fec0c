"""Facts of Swin transformers, and maps that windows do not divide."""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest
import torch

from spaces import models
from spaces.analysis import analyse
from spaces.registry import SpaceError, make_space, named_space
from spaces.spec import Task
from spaces.swin import Swin, maps, padded
from spaces.swinv2 import SwinV2

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


FAMILIES = {"swin": Swin(), "swinv2": SwinV2()}


def shifting_space(family, image_size=32, **values):
    overrides = {"patch_size": [4], "head_width": [8], "shift": [False, True], **values}
    return make_space(Task(image_size, 3, 10), families=[family], overrides={family: overrides})


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_fixed_is_no_dimension_and_leaves_no_trace_in_a_spec(family):
    task = Task(32, 3, 10)
    space = make_space(task, families=[family])
    assert f"{family}.shift" not in [own.name for own in space.dimensions]
    point = space.sample(random.Random(0))
    both = make_space(task, families=[family], overrides={family: {"shift": [False, True]}})
    assert both.spec({**point, f"{family}.shift": True}) == space.spec(point)


@pytest.mark.parametrize("family", FAMILIES)
def test_points_with_and_without_shifts_build_and_cost_the_same(count_built, family):
    space, rng = shifting_space(family), random.Random(0)
    seen = set()
    for _ in range(20):
        point = space.sample(rng)
        spec = space.spec(point)
        built, known = count_built(spec), analyse(spec)
        assert (built.params, built.flops, built.activations) == (
            *(known.params, known.flops, known.activations),
        )
        seen.add(point[f"{family}.shift"])
    assert seen == {False, True}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("image_size", "windows"), [(32, [2, 4, 6, 8]), (28, [2, 4, 7])])
def test_shift_is_a_choice_wherever_it_makes_another_network_and_nowhere_else(
    filled, family, image_size, windows
):
    """Tried on the built networks: every depth up to 2 of three stages, every window."""
    image = torch.randn(1, 3, image_size, image_size, generator=torch.Generator().manual_seed(0))
    one_of_the_rest = {"heads": [1], "mlp_ratio": [1], "num_stages": [2, 3]}
    depths = {f"depth_{stage}": [1, 2] for stage in (1, 2, 3)}
    space = shifting_space(family, image_size, window=windows, **one_of_the_rest, **depths)
    rng = random.Random(0)
    shifted = {str(point): point for point in (space.sample(rng) for _ in range(300))}
    shifted = [point for point in shifted.values() if point[f"{family}.shift"]]
    legal = 0
    for point in shifted:
        other = {**point, f"{family}.shift": False}
        without = FAMILIES[family].spec(
            space.task, {name.partition(".")[2]: value for name, value in other.items()}
        )
        with torch.no_grad():
            alike = torch.allclose(filled(space.spec(point))(image), filled(without)(image))
        assert (space.illegal(other) is None) != alike, point
        legal += not alike
    assert 0 < legal < len(shifted)


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_of_windows_are_stored_since_timm_does_not_fuse_them(family):
    """What is not stored is nothing, or at least nothing that grows with the number of windows."""
    depths = {"num_stages": [2], "depth_1": [2], "depth_2": [1]}
    values = {"window": [2], "shift": [True], "heads": [1], "mlp_ratio": [1], **depths}
    spec, larger = (
        space.spec(space.sample(random.Random(0)))
        for space in (shifting_space(family, image_size, **values) for image_size in (32, 64))
    )
    assert analyse(spec).unstored == analyse(larger).unstored
    with (
        torch.no_grad(),
        patch("torch.nn.functional.scaled_dot_product_attention", side_effect=AssertionError),
    ):
        models.build(spec)(torch.zeros(1, 3, 32, 32))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_unshifted_network_stays_one_for_images_of_another_size(family):
    space = shifting_space(family, shift=[False], window=[2])
    model = models.build(space.spec(space.sample(random.Random(0))))
    model.set_input_size(img_size=(64, 64), window_size=(2, 2))
    blocks = [module for module in model.modules() if hasattr(module, "shift_size")]
    assert blocks
    assert all(not any(block.shift_size) and block.attn_mask is None for block in blocks)


@pytest.mark.parametrize(
    "values",
    [
        {"depth_1": [1], "depth_2": [1], "num_stages": [2]},
        {"window": [8]},
        {"window": [4], "depth_1": [1], "num_stages": [2]},
    ],
)
def test_to_leave_out_a_shift_that_is_not_there_is_refused(values):
    with pytest.raises(SpaceError, match=r"swin\.shift: False is not legal: without shift it is the same"):
        shifting_space("swin", **values)
