from __future__ import annotations

import random

import pytest

from search import rungs, sampler
from search.sampler import Exhausted, Known
from spaces.registry import make_space
from spaces.space import Space
from spaces.spec import Task

UP_DOWN = (True, False)
TASK = Task(image_size=8, channels=1, num_classes=10)


@pytest.fixture(scope="module")
def space() -> Space:
    return make_space(TASK, "tiny", ["vit"])


def known(space: Space, count: int, seed: int = 0) -> list[Known]:
    rng = random.Random(seed)
    return [Known(n, space.sample(rng), {0: (rng.random(), rng.random())}) for n in range(1, count + 1)]


def test_equal_seeds_propose_the_same_point(space: Space) -> None:
    history = known(space, 20)
    one = sampler.propose(space, history, UP_DOWN, set(), random.Random(5))
    assert sampler.propose(space, history, UP_DOWN, set(), random.Random(5)) == one


def test_what_was_tried_is_not_proposed_again(space: Space) -> None:
    taken: set[str] = set()
    for seed in range(60):
        point = sampler.propose(space, known(space, 15), UP_DOWN, taken, random.Random(seed))
        digest = space.spec(point).digest
        assert digest not in taken
        taken.add(digest)


def test_after_its_random_start_it_stays_near_the_best(space: Space) -> None:
    history = known(space, 30)
    leading = rungs.order({k.number: k.scores[0] for k in history}, UP_DOWN)[:10]
    best = [k.point for k in history if k.number in leading]

    def nearest(point: dict) -> float:
        return min(space.distance(point, parent) for parent in best)

    learned = [sampler.propose(space, history, UP_DOWN, set(), random.Random(s)) for s in range(60)]
    blind = [space.sample(random.Random(s)) for s in range(60)]
    assert sum(map(nearest, learned)) < 0.7 * sum(map(nearest, blind))


def test_a_space_is_used_up_to_its_last_point() -> None:
    fixed = {"patch_size": [2], "depth": [2, 3], "heads": [2], "head_width": [16], "mlp_ratio": [2.0]}
    small = make_space(TASK, "tiny", ["vit"], {"vit": fixed})
    taken: set[str] = set()
    for number in range(small.size()):
        point = sampler.propose(small, [], UP_DOWN, taken, random.Random(number))
        taken.add(small.spec(point).digest)
    assert len(taken) == small.size()
    with pytest.raises(Exhausted):
        sampler.propose(small, [], UP_DOWN, taken, random.Random(0))


def test_the_random_start_takes_every_family_as_often() -> None:
    families = ["vit", "deit", "swin", "swinv2", "pit", "hybrid", "windowed"]
    space = make_space(Task(28, 1, 10), families=families)
    seen: list[Known] = []
    for number in range(1, 15):
        taken = {space.spec(candidate.point).digest for candidate in seen}
        point = sampler.propose(space, seen, UP_DOWN, taken, random.Random(number))
        seen.append(Known(number, point, {0: (0.5, 1.0)} if number % 3 else {}))
        drawn = [candidate.point["family"] for candidate in seen]
        counts = [drawn.count(family) for family in families]
        assert max(counts) - min(counts) <= 1
    assert counts == [2] * 7
