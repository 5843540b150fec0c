"""The networks beside a search."""

from __future__ import annotations

from collections import Counter

import pytest

from spaces import models
from spaces.analysis import analyse, knows
from spaces.baselines import PRETRAINED, default_baseline, median_params, pretrained_baselines
from spaces.registry import make_space
from spaces.spec import Task


def never(spec):
    raise AssertionError(f"{spec} has a closed form")


@pytest.mark.parametrize("image_size", [8, 28, 64, 128])
def test_the_default_baseline_is_about_as_large_as_the_middle_of_the_space(image_size):
    space = make_space(Task(image_size, 1, 10))
    target = median_params(space, never)
    assert analyse(default_baseline(space.task, target)).params == pytest.approx(target, rel=0.25)


def test_the_median_is_the_same_at_every_call():
    space = make_space(Task(8, 1, 10))
    assert median_params(space, never) == median_params(space, never)


def test_networks_without_a_closed_form_are_counted_once_each():
    names = ["mobilenetv3_small_100.lamb_in1k", "resnet50.a1_in1k", "deit_tiny_patch16_224.fb_in1k"]
    space = make_space(Task(8, 1, 10), families=["zoo"], overrides={"zoo": {"model": names}})
    asked = Counter()

    def count(spec):
        asked[spec.model, spec.image_size] += 1
        return models.count(spec)

    assert 1_500_000 < median_params(space, count) < 5_700_000  # between MobileNet and the whole DeiT-Ti
    assert asked == {("mobilenetv3_small_100", 64): 1, ("mobilenetv3_small_100", 96): 1}


def test_a_target_out_of_reach_gets_the_nearest_there_is():
    task = Task(8, 1, 10)
    assert analyse(default_baseline(task, 0)).params < 25_000
    assert analyse(default_baseline(task, 10**12)).params > 10**9


@pytest.mark.parametrize(
    ("image_size", "fed"), [(8, 64), (64, 64), (65, 80), (96, 96), (100, 112), (224, 224)]
)
def test_pretrained_baselines_are_whole_and_get_images_that_suit_them(count_built, image_size, fed):
    specs = pretrained_baselines(Task(image_size, 1, 7))
    assert {name: spec.weights for name, spec in specs.items()} == PRETRAINED
    assert {spec.image_size for spec in specs.values()} == {fed}
    for spec in specs.values():
        assert knows(spec)
        assert count_built(spec, device="meta").output == (1, 7)
    assert specs["deit_tiny"].args["depth"] == 12
