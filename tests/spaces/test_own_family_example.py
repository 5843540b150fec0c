"""What holds for every point of our families holds for the one that is shown as an example of a user's own."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spaces.registry import SpaceError, make_space
from spaces.space import Space
from spaces.spec import Task

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
try:
    from own_family import Mixer  # pyright: ignore[reportMissingImports]
finally:
    sys.path.pop(0)

SIZES = (8, 28, 32, 96)


def space_of(size: int, **overrides: Any) -> Space:
    task = Task(size, 1 if size < 32 else 3, 10)
    return make_space(task, families=["mixer"], overrides=overrides, own={"mixer": Mixer()})


@pytest.mark.parametrize("size", SIZES)
def test_every_point_builds_runs_and_costs_what_the_closed_form_says(
    count_built: Callable[..., Any], size: int
) -> None:
    space, rng = space_of(size), random.Random(size)
    for _ in range(15):
        spec = space.spec(space.sample(rng))
        built, known = count_built(spec), Mixer().analyse(spec)
        assert built.output == (1, 10)
        assert built.finite
        assert (built.params, built.flops, built.activations) == (
            known.params,
            known.flops,
            known.activations,
        )


@pytest.mark.parametrize("size", SIZES)
def test_points_that_differ_are_other_networks(count_built: Callable[..., Any], size: int) -> None:
    space, rng = space_of(size), random.Random(size)
    for _ in range(3):
        point = space.sample(rng)
        shapes = count_built(space.spec(point), device="meta").shapes
        for other in space.neighbours(point):
            assert count_built(space.spec(other), device="meta").shapes != shapes


def test_kernels_that_reach_beyond_the_map_wherever_they_are_do_not_exist() -> None:
    kept = space_of(8, mixer={"patch_size": [1, 2, 4], "kernel": [3, 5, 7, 9]})
    pairs = set()
    rng = random.Random(0)
    for _ in range(300):
        point = kept.sample(rng)
        pairs.add((point["mixer.patch_size"], point["mixer.kernel"]))
    assert pairs == {(1, 3), (1, 5), (1, 7), (1, 9), (2, 3), (2, 5), (2, 7), (4, 3)}
    with pytest.raises(SpaceError, match="kernel 9 reaches beyond 2 x 2 patches"):
        space_of(8, mixer={"patch_size": [4], "kernel": [9]})


def test_a_family_of_the_users_is_searched_only_where_it_is_named() -> None:
    assert "mixer" not in make_space(Task(8, 1, 10), own={"mixer": Mixer()}).families
    with pytest.raises(SpaceError, match="unknown name 'mixer'"):
        make_space(Task(8, 1, 10), families=["mixer"])
