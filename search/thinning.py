"""Whose checkpoint goes first when the disk gets full. Pure.

Of networks trained in full first those that break a constraint, then the dominated, the worst rank first; then of those
that failed, and last of those that were stopped, the least trained first, because an extension would take them up. The
front, what may still be trained, baselines and the teacher keep theirs whatever it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from search import pareto


class Group(IntEnum):
    """In the order in which their checkpoints go."""

    OUTSIDE = 0
    DOMINATED = 1
    FAILED = 2
    STOPPED = 3


@dataclass(frozen=True)
class Stored:
    """The checkpoints of one candidate. group: None for one that keeps them. values: of the objectives, of a dominated
    one. epoch: that it is trained to. num_bytes: of its files."""

    number: int
    group: Group | None
    num_bytes: int
    epoch: int = 0
    values: tuple[float, ...] = ()


def choose(stored: Sequence[Stored], maximise: Sequence[bool], num_bytes: float) -> list[Stored]:
    """Whose checkpoints have to go, in this order, to free so much; all that may go where that is not enough."""
    chosen: list[Stored] = []
    freed = 0
    for one in _in_order(stored, maximise):
        if freed >= num_bytes:
            break
        chosen.append(one)
        freed += one.num_bytes
    return chosen


def _in_order(stored: Sequence[Stored], maximise: Sequence[bool]) -> list[Stored]:
    """What may go and frees something; of equals the largest first, then the youngest."""
    dominated = [one for one in stored if one.group is Group.DOMINATED]
    ranks = pareto.ranks([one.values for one in dominated], maximise) if dominated else []
    rank = {one.number: found for one, found in zip(dominated, ranks, strict=True)}

    def key(one: Stored) -> tuple[int, int, int, int, int]:
        assert one.group is not None
        last = one.epoch if one.group is Group.STOPPED else 0
        return one.group, -rank.get(one.number, 0), last, -one.num_bytes, -one.number

    return sorted((one for one in stored if one.group is not None and one.num_bytes > 0), key=key)
