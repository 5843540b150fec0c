"""The convolutional network beside a search."""

from __future__ import annotations

import pytest

from spaces.analysis import analyse, knows
from spaces.baselines import default_baseline, median_params
from spaces.registry import make_space
from spaces.spec import Task


@pytest.mark.parametrize("image_size", [8, 28, 32, 33, 64, 65, 96, 128])
@pytest.mark.parametrize("target", [50_000, 1_000_000])
def test_the_baseline_builds_runs_and_costs_what_the_closed_form_says(count_built, image_size, target):
    spec = default_baseline(Task(image_size, 3, 10), target)
    built, known = count_built(spec), analyse(spec)
    assert built.output == (1, 10)
    assert built.finite
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)


@pytest.mark.parametrize("image_size", [8, 28, 64, 128])
def test_the_default_baseline_is_about_as_large_as_the_middle_of_the_space(image_size):
    space = make_space(Task(image_size, 1, 10))
    target = median_params(space)
    spec = default_baseline(space.task, target)
    assert knows(spec)
    assert analyse(spec).params == pytest.approx(target, rel=0.25)


def test_the_median_is_the_same_at_every_call():
    space = make_space(Task(8, 1, 10))
    assert median_params(space) == median_params(space)


def test_tiny_images_are_not_reduced_by_the_stem():
    assert default_baseline(Task(8, 1, 10), 100_000).args["stem_stride"] == 1
    assert default_baseline(Task(64, 1, 10), 100_000).args["stem_stride"] == 2
    assert default_baseline(Task(128, 1, 10), 100_000).args["stem_stride"] == 4
