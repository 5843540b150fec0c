"""The distillation token."""

from __future__ import annotations

import random

import pytest
import torch

from spaces import models
from spaces.analysis import analyse
from spaces.registry import make_space, named_space
from spaces.spec import Task


def draw(**overrides):
    space = make_space(Task(32, 3, 10), families=["deit"], overrides={"deit": overrides})
    return space.spec(space.sample(random.Random(0)))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("deit_tiny_distilled_patch16_224", 5_910_800),
        ("deit_small_distilled_patch16_224", 22_436_432),
        ("deit_base_distilled_patch16_224", 87_338_192),
    ],
)
def test_the_published_models_are_points_with_their_published_parameters(name, params):
    space = named_space(name)
    known = analyse(space.spec(space.sample(random.Random(0))))
    assert (known.params, known.tokens) == (params, 198)


@pytest.mark.parametrize("training", [True, False])
def test_the_network_answers_with_the_mean_of_both_classifiers_until_it_is_asked_for_both(training):
    torch.manual_seed(0)
    model = models.build(draw(depth=[2])).train(training)
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        tokens = model.forward_features(images)
        class_scores, teacher_scores = model.head(tokens[:, 0]), model.head_dist(tokens[:, 1])
        assert torch.allclose(model(images), (class_scores + teacher_scores) / 2)
        model.set_distilled_training()
        assert isinstance(model(images), tuple) == training


def test_both_classifiers_learn_from_the_labels_where_there_is_no_teacher():
    model = models.build(draw(depth=[1]))
    loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 3, 32, 32)), torch.arange(4))
    loss.backward()
    assert model.head.weight.grad.abs().sum() > 0
    assert model.head_dist.weight.grad.abs().sum() > 0
    assert model.dist_token.grad.abs().sum() > 0


@pytest.mark.parametrize("values", [{"qk_norm": [True]}, {"layer_scale": [True]}, {"qkv_bias": [False]}])
def test_what_is_fixed_can_be_searched(count_built, values):
    spec, plain = draw(**values), draw()
    built, known = count_built(spec), analyse(spec)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)
    assert built.shapes != count_built(plain).shapes
