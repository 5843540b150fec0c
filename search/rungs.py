"""Which candidate trains on: asynchronous successive halving with several objectives.

A rung is a budget in cumulative epochs. Promotion follows Li et al., "A System for Massively Parallel
Hyperparameter Tuning" (MLSys 2020), with candidates ordered by non-dominated rank and, within a rank, farthest
first, as in Schmucker et al., "Multi-objective Asynchronous Successive Halving" (2021). Pure: no effects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from search import pareto
from search.states import TERMINAL_CANDIDATE, CandidateState

REDUCTION = 3
_MAX_AUTO_RUNGS = 3

Fits = Callable[[int, int], bool]
"""(candidate, rung index to train to) -> whether there is time for it."""


def _always(number: int, rung: int) -> bool:
    del number, rung
    return True


@dataclass(frozen=True)
class Standing:
    """Where a candidate stands.

    reached: index of the highest rung it has been promoted to (0 at first). waiting: it may be promoted now.
    coming: it is on its way to the score of that rung. Neither: it has ended.
    scores: rung index -> objective values, for the rungs it has completed.
    """

    number: int
    reached: int
    waiting: bool
    coming: bool
    scores: Mapping[int, Sequence[float]]


def standing(
    number: int, state: CandidateState, rung: int | None, scores: Mapping[int, Sequence[float]]
) -> Standing:
    """Where a candidate in `state` stands that has completed `rung` (None: none yet)."""
    completed = -1 if rung is None else rung
    at_rest = state in (CandidateState.WAITING, CandidateState.FINISHED, CandidateState.STOPPED)
    return Standing(
        number=number,
        reached=max(completed, 0) if at_rest else completed + 1,
        waiting=state == CandidateState.WAITING,
        coming=state != CandidateState.WAITING and state not in TERMINAL_CANDIDATE,
        scores=scores,
    )


def resolve(rungs: str | Sequence[int], epochs: int, sampler: str) -> tuple[int, ...]:
    """Cumulative epochs of each rung, the last equal to `epochs`.

    `auto` divides by 3 up to twice for sampler `auto`, and is `none` for Optuna's own samplers, which learn from
    complete trainings only.
    """
    if not isinstance(rungs, str):
        return tuple(rungs)
    if rungs == "none" or sampler != "auto":
        return (epochs,)
    budgets = [epochs]
    while len(budgets) < _MAX_AUTO_RUNGS and budgets[-1] // REDUCTION >= 1:
        budgets.append(budgets[-1] // REDUCTION)
    return tuple(reversed(budgets))


def next_promotion(
    standings: Collection[Standing],
    num_rungs: int,
    maximise: Sequence[bool],
    *,
    closing: bool,
    fits: Fits = _always,
) -> tuple[int, int] | None:
    """(candidate, rung index to train to), or None when nobody has earned it yet.

    Of those that completed a rung, the best third goes on, rounded down while more may come. Once the search is
    `closing` (no new candidate will come), rungs are settled from the lowest up, when nobody is on the way to
    them: `quota` go on, so that even a small search ends in a front. Whom there is no time for is passed over.
    """
    for rung in reversed(range(num_rungs - 1)):
        completed = [s for s in standings if rung in s.scores]
        number = _best_of(completed, rung, len(completed) // REDUCTION, maximise, fits)
        if number is not None:
            return number, rung + 1
    if not closing:
        return None
    for rung in range(num_rungs - 1):
        if any(s.coming and s.reached <= rung for s in standings):
            return None
        completed = [s for s in standings if rung in s.scores]
        number = _best_of(completed, rung, quota(len(completed), len(maximise)), maximise, fits)
        if number is not None:
            return number, rung + 1
    return None


def next_filler(
    standings: Collection[Standing], num_rungs: int, maximise: Sequence[bool], fits: Fits
) -> tuple[int, int] | None:
    """(candidate, rung index to train to): the best that waits and that there is time for, at the highest rung, whether
    it has earned it or not. For time that nothing else can use."""
    for rung in reversed(range(num_rungs - 1)):
        completed = [s for s in standings if rung in s.scores]
        number = _best_of(completed, rung, len(completed), maximise, fits)
        if number is not None:
            return number, rung + 1
    return None


def quota(completed: int, num_objectives: int) -> int:
    """How many of those that completed a rung go on once no more will come: a third, rounded up, and never fewer than
    one more than there are objectives, where there are so many."""
    return max(-(-completed // REDUCTION), min(completed, num_objectives + 1))


def _best_of(
    completed: Sequence[Standing], rung: int, number: int, maximise: Sequence[bool], fits: Fits
) -> int | None:
    """The best candidate among the first `number` that still waits at `rung` and fits; None when there is none.

    Whom there is no time for leaves its place to the next.
    """
    if sum(s.reached > rung for s in completed) >= number:
        return None
    waiting = {s.number for s in completed if s.waiting and s.reached == rung}
    if not waiting:
        return None
    place = 0
    for candidate in order({s.number: s.scores[rung] for s in completed}, maximise):
        if candidate not in waiting:
            place += 1
        elif fits(candidate, rung + 1):
            return candidate
        if place == number:
            break
    return None


def order(values: Mapping[int, Sequence[float]], maximise: Sequence[bool]) -> list[int]:
    """Candidate numbers, best first: by non-dominated rank, then farthest from those already chosen."""
    numbers = sorted(values)
    if not numbers:
        return []
    ranks = pareto.ranks([values[n] for n in numbers], maximise)
    unit = _unit_scaled([values[n] for n in numbers])
    ordered: list[int] = []
    for rank in sorted(set(ranks)):
        tied = [i for i, r in enumerate(ranks) if r == rank]
        ordered += _farthest_first(tied, unit, maximise)
    return [numbers[i] for i in ordered]


def _unit_scaled(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    columns = list(zip(*rows, strict=True))
    scaled = []
    for column in columns:
        low, high = min(column), max(column)
        scaled.append([0.0 if high == low else (value - low) / (high - low) for value in column])
    return [list(row) for row in zip(*scaled, strict=True)]


def _farthest_first(tied: list[int], unit: Sequence[Sequence[float]], maximise: Sequence[bool]) -> list[int]:
    """Starts at the best value of the first objective; ties fall to the lower candidate number."""
    if not tied:
        return []
    sign = 1 if maximise[0] else -1
    chosen = [max(tied, key=lambda i: (sign * unit[i][0], -i))]
    left = [i for i in tied if i != chosen[0]]
    distance = {i: _squared(unit[i], unit[chosen[0]]) for i in left}
    while left:
        best = max(left, key=lambda i: (distance[i], -i))
        chosen.append(best)
        left.remove(best)
        for i in left:
            distance[i] = min(distance[i], _squared(unit[i], unit[best]))
    return chosen


def _squared(a: Sequence[float], b: Sequence[float]) -> float:
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
