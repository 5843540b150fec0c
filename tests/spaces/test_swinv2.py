"""The second version of Swin."""

from __future__ import annotations

import random

import pytest
import torch

from spaces import models, swin, swinv2
from spaces.analysis import analyse
from spaces.registry import SpaceError, make_space, named_space
from spaces.spec import Task

ONE = {
    "patch_size": 4,
    "window": 4,
    "num_stages": 2,
    "depth_1": 2,
    "depth_2": 1,
    "heads": 2,
    "head_width": 8,
    "mlp_ratio": 2,
}


def one_point(family, image_size, **values):
    overrides = {family: {key: [value] for key, value in {**ONE, **values}.items()}}
    space = make_space(Task(image_size, 3, 10), families=[family], overrides=overrides)
    return space.spec(space.sample(random.Random(0)))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("swinv2_tiny_window8_256", 28_347_154),
        ("swinv2_small_window16_256", 49_728_418),
        ("swinv2_base_window8_256", 87_918_816),
    ],
)
def test_the_published_models_are_points_with_their_published_parameters(count_built, name, params):
    space = named_space(name)
    spec = space.spec(space.sample(random.Random(0)))
    known, built = analyse(spec), count_built(spec, device="meta")
    assert (known.params, known.tokens, spec.image_size) == (params, 64 * 64, 256)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)


@pytest.mark.parametrize(
    ("image_size", "window"), [(28, 4), (44, 4), (40, 7), (44, 7), (68, 6), (56, 14), (32, 8)]
)
def test_windows_that_do_not_divide_the_map_or_cover_it_are_counted(count_built, image_size, window):
    spec = one_point("swinv2", image_size, window=window)
    built, known = count_built(spec), analyse(spec)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)


def test_dimensions_and_what_is_legal_of_them_are_those_of_swin():
    for image_size in (8, 32, 224):
        task = Task(image_size, 3, 10)
        assert swinv2.SwinV2().limits(task) == swin.Swin().limits(task)
    with pytest.raises(SpaceError, match="window 16 is larger than the map of 8 x 8 patches"):
        one_point("swinv2", 32, window=16)


def test_a_point_of_both_versions_is_two_networks(filled):
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    first, second = (one_point(family, 32) for family in ("swin", "swinv2"))
    assert first.args == second.args
    assert first.digest != second.digest
    with torch.no_grad():
        assert not torch.allclose(filled(first)(image), filled(second)(image))


def test_every_parameter_learns():
    """Some time after the start, where the gains of all blocks are zero."""
    model = models.build(one_point("swinv2", 32))
    torch.manual_seed(0)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.1 * torch.randn_like(value))
    model(torch.randn(2, 3, 32, 32)).square().sum().backward()
    assert all(value.grad is not None and value.grad.abs().sum() > 0 for value in model.parameters())
