"""Which candidate next: random at first, from every family as often; then neighbours and crossovers of the best so far.
Pure.

Learns from every score that a rung has given, not from complete trainings alone: parents come from the
non-dominated candidates of each rung, higher rungs first. Steady-state evolution in the spirit of Real et al.,
"Regularized Evolution for Image Classifier Architecture Search" (AAAI 2019), with non-dominated parents.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from search import rungs
from spaces.dims import Point
from spaces.registry import Space
from spaces.space import FAMILY

STARTUP = 10
STARTUP_A_FAMILY = 2
"""Candidates that have to be scored before parents are chosen: so many, and so many for each family."""
_RANDOM_SHARE = 0.2
_CROSSOVER_SHARE = 0.4
_TRIES = 200


class Exhausted(Exception):
    """The space has no point left that the search has not tried."""


@dataclass(frozen=True)
class Known:
    """What the sampler may learn from: a candidate's point and its objective values by rung."""

    number: int
    point: Point
    scores: Mapping[int, Sequence[float]]


def propose(
    space: Space, known: Sequence[Known], maximise: Sequence[bool], taken: Set[str], rng: random.Random
) -> Point:
    """A legal point whose digest is not in `taken`. Raises Exhausted when there is none.

    Equal arguments and an equally seeded `rng` give the same point.
    """
    startup = max(STARTUP, STARTUP_A_FAMILY * len(space.families))
    parents = _parents(known, maximise, startup)
    rare = _rarest(space, known)
    for attempt in range(_TRIES):
        if parents:
            point = _draw(space, parents, rng, explore=attempt > _TRIES // 2)
        else:
            point = space.sample(rng, rng.choice(rare) if attempt <= _TRIES // 2 else None)
        if space.spec(point).digest not in taken:
            return point
    return _first_untaken(space, taken)


def _draw(space: Space, parents: Sequence[Point], rng: random.Random, *, explore: bool) -> Point:
    if explore or rng.random() < _RANDOM_SHARE:
        return space.sample(rng)
    mother = parents[_biased(len(parents), rng)]
    if len(parents) > 1 and rng.random() < _CROSSOVER_SHARE:
        father = rng.choice([parent for parent in parents if parent is not mother])
        return space.crossover(mother, father, rng)
    near = space.neighbours(mother)
    return rng.choice(near) if near else space.sample(rng)


def _biased(count: int, rng: random.Random) -> int:
    """An index, low ones more often: the better of two draws."""
    return min(rng.randrange(count), rng.randrange(count))


def _rarest(space: Space, known: Sequence[Known]) -> list[str]:
    """The families that were proposed least often so far."""
    counts = Counter(str(candidate.point[FAMILY]) for candidate in known)
    fewest = min(counts[family] for family in space.families)
    return [family for family in space.families if counts[family] == fewest]


def _parents(known: Sequence[Known], maximise: Sequence[bool], startup: int) -> list[Point]:
    """Up to a third of those scored, the best of the highest rung first; empty during the random start."""
    scored = [candidate for candidate in known if candidate.scores]
    if len(scored) < startup:
        return []
    points = {candidate.number: candidate.point for candidate in scored}
    ordered: list[int] = []
    for rung in sorted({rung for candidate in scored for rung in candidate.scores}, reverse=True):
        values = {c.number: c.scores[rung] for c in scored if rung in c.scores and c.number not in ordered}
        best = rungs.order(values, maximise)
        ordered += best[: max(2, len(best) // 3)]
    return [points[number] for number in ordered[: max(4, len(scored) // 3)]]


def _first_untaken(space: Space, taken: Set[str]) -> Point:
    """Small spaces: walks outward from many points until something new is found."""
    rng = random.Random(0)
    frontier = [space.sample(rng) for _ in range(_TRIES)]
    seen = {space.spec(point).digest for point in frontier}
    while frontier:
        point = frontier.pop()
        if space.spec(point).digest not in taken:
            return point
        for near in space.neighbours(point):
            digest = space.spec(near).digest
            if digest not in seen:
                seen.add(digest)
                frontier.append(near)
    raise Exhausted
