"""The convolutional stem in front of a transformer."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from spaces import models
from spaces.analysis import analyse, knows
from spaces.hybrid import ACTIVATIONS, FIXED, NORMS, stem
from spaces.registry import make_space
from spaces.spec import ArchSpec, Task


@pytest.mark.parametrize(
    ("stride", "depth", "channels", "strides"),
    [
        (1, 2, [8, 64], [1, 1]),
        (2, 3, [8, 8, 64], [2, 1, 1]),
        (4, 4, [8, 16, 16, 64], [2, 2, 1, 1]),
        (8, 3, [8, 16, 64], [2, 2, 2]),
    ],
)
def test_the_stem_halves_first_and_widens_with_every_halving(stride, depth, channels, strides):
    assert stem(stride, depth, 8, 64) == (channels, strides)


def test_a_stem_reaches_its_stride_at_every_point():
    space = make_space(Task(64, 3, 10), families=["hybrid"])
    rng = random.Random(0)
    for _ in range(300):
        args = space.spec(space.sample(rng)).args
        stride = 2 ** args["stem_strides"].count(2)
        assert 64 % stride == 0
        assert args["stem_channels"][-1] == args["embed_dim"]


def test_a_stem_too_short_for_its_stride_is_illegal():
    space = make_space(Task(64, 3, 10), families=["hybrid"])
    point = {**space.sample(random.Random(0)), "hybrid.stride": 16, "hybrid.stem_depth": 3}
    assert "cannot reach stride 16" in str(space.illegal(point))


KINDS = list(itertools.product(NORMS, ACTIVATIONS))


def one_hybrid(stem_norm, stem_activation, image_size=32, channels=3, **values):
    fixed = {"stem_norm": [stem_norm], "stem_activation": [stem_activation], **values}
    space = make_space(Task(image_size, channels, 10), families=["hybrid"], overrides={"hybrid": fixed})
    return space.spec(space.sample(random.Random(0)))


@pytest.mark.parametrize(("stem_norm", "stem_activation"), KINDS)
def test_every_kind_of_stem_builds_and_costs_what_the_closed_form_says(
    count_built, stem_norm, stem_activation
):
    for values in ({"stem_depth": [2], "stride": [4]}, {"stem_depth": [4], "stride": [2]}):
        spec = one_hybrid(stem_norm, stem_activation, **values)
        built, known = count_built(spec), analyse(spec)
        assert (built.params, built.flops, built.activations) == (
            *(known.params, known.flops, known.activations),
        )
        assert built.finite


def test_kinds_of_stems_are_different_networks(filled):
    specs = [one_hybrid(*kind) for kind in KINDS]
    assert len({spec.digest for spec in specs}) == len(KINDS)
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        answers = [filled(spec)(image) for spec in specs]
    for one, other in itertools.combinations(answers, 2):
        assert not torch.allclose(one, other)


def test_what_is_fixed_is_no_dimension_and_leaves_no_trace_in_a_spec():
    space = make_space(Task(32, 3, 10), families=["hybrid"])
    assert not {f"hybrid.{key}" for key in FIXED} & {own.name for own in space.dimensions}
    point = space.sample(random.Random(0))
    named = {key: [value] for key, value in FIXED.items()}
    both = make_space(Task(32, 3, 10), families=["hybrid"], overrides={"hybrid": named})
    assert both.spec({**point, **{f"hybrid.{key}": value for key, value in FIXED.items()}}) == space.spec(
        point
    )
    assert not {"stem_norm", "stem_activation"} & space.spec(point).args.keys()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_deep_stem_without_norms_neither_swallows_nor_blows_up_the_image(activation):
    torch.manual_seed(0)
    stem = models.build(one_hybrid("none", activation, stem_depth=[12], stride=[2])).patch_embed.backbone
    with torch.no_grad():
        before_last = torch.nn.Sequential(*list(stem)[:-1])(torch.randn(4, 3, 32, 32))
    assert 0.02 < before_last.std() < 5


def test_an_entry_point_told_of_another_norm_or_activation_says_what_there_is():
    spec = one_hybrid("layer", "gelu")
    wrong = ArchSpec(spec.model, {**spec.args, "stem_norm": "group"}, spec.image_size)
    assert not knows(wrong)
    with pytest.raises(ValueError, match="stem_norm: 'group' is none of batch, layer, none"):
        models.build(wrong)
    wrong = ArchSpec(spec.model, {**spec.args, "stem_activation": "tanh"}, spec.image_size)
    assert not knows(wrong)
    with pytest.raises(ValueError, match="stem_activation: 'tanh' is none of relu, gelu, silu"):
        models.build(wrong)
