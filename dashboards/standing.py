"""Where a candidate stands to the front, in words, with the others that it is compared with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.figures import palette
from dashboards.summary import objectives
from search import gate
from search.front import FrontPoint, FrontView, Standing
from search.objectives import Quantity
from workers.counting import counted

MOST_NAMED = 8


@dataclass(frozen=True)
class Verdict:
    """words: a sentence. others: (what they are to it, points) to go on to."""

    words: str
    others: tuple[tuple[str, tuple[FrontPoint, ...]], ...] = ()


def verdict(view: FrontView, point: FrontPoint, full: int) -> Verdict:
    """full: epochs of a full training."""
    standing, names = point.standing, objectives([quantity.name for quantity in view.objectives])
    if standing == Standing.FRONT:
        words = f"On the front of {names}: trained in full, within all limits, and beaten by no other."
        return Verdict(words, _neighbours(view, point))
    if standing == Standing.DOMINATED:
        words = f"Beaten by others, which are at least as good in {names}, and better in one."
        return Verdict(words, _beaten_by(view, point))
    if standing == Standing.BASELINE:
        return _of_baseline(view, point, names, full)
    if standing == Standing.OUTSIDE:
        broken = gate.rejection(view.limits, point.values, point.intervals)
        return Verdict(f"Trained in full, but {broken or 'outside a limit'}.")
    if standing == Standing.BORDERLINE:
        doubt = gate.doubt(view.limits, point.values, point.intervals)
        return Verdict(
            f"Trained in full, but {doubt or 'its cost straddles a limit'}, also when measured for longer."
        )
    if standing == Standing.STOPPED:
        return Verdict(f"Its training ended early, after {point.row.epoch} of {counted(full, 'epoch')}.")
    if standing == Standing.UNFINISHED:
        return Verdict(f"Not at its last epoch yet: {_trained(point, full)}.")
    text = palette.GROUPS[str(standing)].help
    return Verdict(f"{text[:1].upper()}{text[1:]}.")


def beats(one: FrontPoint, other: FrontPoint, quantities: Sequence[Quantity]) -> bool:
    """Whether `one` is nowhere worse than `other` and somewhere better; False where a figure is missing."""
    if any(q.name not in one.values or q.name not in other.values for q in quantities):
        return False
    gains = [(one.values[q.name] - other.values[q.name]) * (1 if q.maximise else -1) for q in quantities]
    return min(gains) >= 0 and max(gains) > 0


def _trained(point: FrontPoint, full: int) -> str:
    """`4 of 12 epochs are trained`."""
    return f"{point.row.epoch} of {counted(full, 'epoch')} {'is' if full == 1 else 'are'} trained"


def _of_baseline(view: FrontView, point: FrontPoint, names: str, full: int) -> Verdict:
    start = "A known model, measured and trained the same way"
    if point.row.epoch < full:
        return Verdict(f"{start}; {_trained(point, full)}.")
    beaten = _beaten_by(view, point)
    if beaten:
        return Verdict(
            f"{start}. Candidates of the front beat it: at least as good in {names}, better in one.", beaten
        )
    return Verdict(f"{start}. No candidate beats it in {names}.")


def _beaten_by(view: FrontView, point: FrontPoint) -> tuple[tuple[str, tuple[FrontPoint, ...]], ...]:
    found = tuple(other for other in view.front if beats(other, point, view.objectives))
    return (("Beaten by", found[:MOST_NAMED]),) if found else ()


def _neighbours(view: FrontView, point: FrontPoint) -> tuple[tuple[str, tuple[FrontPoint, ...]], ...]:
    """The front is in the order of its first cost."""
    place = next(i for i, other in enumerate(view.front) if other.row.id == point.row.id)
    cost = next((q for q in view.objectives if q.kind == "cost"), None)
    if cost is None:
        return ()
    less, more = f"Next with less {cost.label}", f"Next with more {cost.label}"
    if cost.maximise:
        less, more = more, less
    found = ((less, view.front[max(place - 1, 0) : place]), (more, view.front[place + 1 : place + 2]))
    return tuple((words, points) for words, points in found if points)
