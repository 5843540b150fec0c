"""Facts of plain vision transformers."""

from __future__ import annotations

import random

import pytest

from spaces.analysis import analyse
from spaces.registry import make_space, named_space
from spaces.spec import Task


def known(space):
    return analyse(space.spec(space.sample(random.Random(0))))


def one_vit(image_size, **values):
    base = {"patch_size": 16, "depth": 12, "heads": 3, "head_width": 64, "mlp_ratio": 4, "pooling": "average"}
    overrides = {"vit": {key: [value] for key, value in {**base, **values}.items()}}
    return known(make_space(Task(image_size, 3, 1000), families=["vit"], overrides=overrides))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("vit_base_patch16_224", 86_567_656),
        ("deit_tiny_patch16_224", 5_717_416),
        ("deit_small_patch16_224", 22_050_664),
        ("vit_base_patch32_224", 88_224_232),
    ],
)
def test_the_published_models_are_points_with_their_published_parameters(name, params):
    assert known(named_space(name)).params == params


def test_224_px_and_16_px_patches_make_196_tokens_and_197_with_the_class_token():
    assert one_vit(224).tokens == 196
    assert one_vit(224, pooling="class_token").tokens == 197
    assert one_vit(224, patch_size=32).tokens == 49


def test_flops_and_parameters_do_not_depend_on_how_the_width_is_split_into_heads():
    split, whole = one_vit(224, heads=12, head_width=16), one_vit(224, heads=3, head_width=64)
    assert (split.params, split.flops) == (whole.params, whole.flops)
    assert split.activations > whole.activations


def test_doubling_the_resolution_multiplies_attention_score_flops_by_16():
    def scores(image_size):
        deep, shallow = one_vit(image_size, depth=2), one_vit(image_size, depth=1)
        dense = 2 * 12 * 192 * 192 * deep.tokens
        return deep.flops - shallow.flops - dense

    assert scores(448) == 16 * scores(224)
