"""Whether a device is as it was, by readings of one reference model, and what has to be measured again. Pure.

Whatever was measured between two successive readings that differ may be off by as much: it is measured again, and where
that happens once too often, it stays flagged.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

TOLERANCE = 0.03
"""Share of the earlier reading by which another may be off."""
ERRORS = 3.0
"""Standard errors of the difference that are no difference."""
MOST_AGAIN = 2
FLAG = "drifted"


@dataclass(frozen=True)
class Reading:
    """The reference, measured. at: its place in the order in which everything was measured. error_ms: standard error
    of ms. time: UTC seconds."""

    at: int
    ms: float
    error_ms: float
    time: float = 0.0


@dataclass(frozen=True)
class Taken:
    """A measurement of a candidate (or baseline), by an id of it. at: as of readings."""

    at: int
    candidate: int


@dataclass(frozen=True)
class Verdict:
    """drifted: places of the measurements that lie between readings that differ, those that were replaced since too.
    again: candidates to measure again, in the order of their last measurement. given_up: those that have been, as
    often as they may be, and whose last measurement drifted all the same."""

    drifted: frozenset[int]
    again: tuple[int, ...]
    given_up: tuple[int, ...]


def differ(one: Reading, other: Reading) -> bool:
    """Whether two readings are apart by more than max(3% of the first, 3 standard errors of the difference)."""
    error = math.hypot(one.error_ms, other.error_ms)
    return abs(other.ms - one.ms) > max(TOLERANCE * one.ms, ERRORS * error)


def judge(readings: Sequence[Reading], taken: Sequence[Taken]) -> Verdict:
    """Both in order. A reading that is a candidate's own first measurement is in `taken` too, and belongs to what comes
    after it; what was measured before the first reading counts as after it; what comes after the last one is not
    judged yet."""
    places = [reading.at for reading in readings]
    apart = {index for index, pair in enumerate(pairwise(readings)) if differ(*pair)}
    drifted = frozenset(one.at for one in taken if _interval(places, one.at) in apart)
    times: dict[int, int] = {}
    last: dict[int, int] = {}
    for one in taken:
        times[one.candidate] = times.get(one.candidate, 0) + 1
        last[one.candidate] = one.at
    off = sorted((at, candidate) for candidate, at in last.items() if at in drifted)
    return Verdict(
        drifted=drifted,
        again=tuple(candidate for _, candidate in off if times[candidate] <= MOST_AGAIN),
        given_up=tuple(candidate for _, candidate in off if times[candidate] > MOST_AGAIN),
    )


def wide_apart(readings: Sequence[Reading]) -> Iterator[tuple[Reading, Reading]]:
    """Successive readings that differ."""
    return (pair for pair in pairwise(readings) if differ(*pair))


def words(reference: str, readings: Sequence[Reading], *, contended: int = 0) -> str:
    """`reference resnet: 0.461 ms at the start, 0.466 at the end (within 3%)`.

    contended: readings beside them that other work disturbed, and that therefore tell nothing; some, where there is no
    other.
    """
    disturbed = f"; {contended} more disturbed by other work" if contended else ""
    if not readings:
        return f"reference {reference}: {contended} readings, all disturbed by other work"
    first, last = readings[0], readings[-1]
    start = f"reference {reference}: {first.ms:.3g} ms at the start"
    if len(readings) == 1:
        return f"{start}, no other reading yet{disturbed}"
    share = max(abs(other.ms - one.ms) / one.ms for one, other in pairwise(readings))
    steps = sum(1 for _ in wide_apart(readings))
    if steps:
        how = f"up to {share:.0%} between readings; what lay between was measured again"
    elif share <= TOLERANCE:
        how = f"within {TOLERANCE:.0%}"
    else:
        how = f"up to {share:.1%} between readings, within {ERRORS:g} standard errors"
    between = f" of {len(readings)} readings" if len(readings) > 2 else ""
    return f"{start}, {last.ms:.3g} at the end{between} ({how}){disturbed}"


def _interval(places: Sequence[int], at: int) -> int:
    """Which pair of readings a place lies between: from the first of them on, up to the second."""
    return max(0, bisect.bisect_right(places, at) - 1)
