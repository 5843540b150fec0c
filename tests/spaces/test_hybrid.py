"""The convolutional stem in front of a transformer."""

from __future__ import annotations

import random

import pytest

from spaces.hybrid import stem
from spaces.registry import make_space
from spaces.spec import Task


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
