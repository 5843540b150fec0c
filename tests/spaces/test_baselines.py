"""The convolutional network beside a search."""

from __future__ import annotations

import pytest

from spaces.analysis import analyse
from spaces.baselines import default_baseline, median_params
from spaces.registry import make_space
from spaces.spec import Task


@pytest.mark.parametrize("image_size", [8, 28, 64, 128])
def test_the_default_baseline_is_about_as_large_as_the_middle_of_the_space(image_size):
    space = make_space(Task(image_size, 1, 10))
    target = median_params(space)
    assert analyse(default_baseline(space.task, target)).params == pytest.approx(target, rel=0.25)


def test_the_median_is_the_same_at_every_call():
    space = make_space(Task(8, 1, 10))
    assert median_params(space) == median_params(space)


def test_a_target_out_of_reach_gets_the_nearest_there_is():
    task = Task(8, 1, 10)
    assert analyse(default_baseline(task, 0)).params < 25_000
    assert analyse(default_baseline(task, 10**12)).params > 10**9
