"""What a search does next when no job waits: promote, propose, or wait. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from search import rungs
from search.memory import Memory
from search.schedule import Schedule


@dataclass(frozen=True)
class Promote:
    """Train a candidate on to a rung, by its index."""

    number: int
    rung: int


@dataclass(frozen=True)
class Propose:
    """Add a candidate."""


def next_step(memory: Memory, schedule: Schedule, exhausted: bool) -> Promote | Propose | None:
    """None when nothing can be decided before something that runs has ended, or nothing ever.

    exhausted: there is nothing left to propose. Where the search has to end at some time, it stops proposing while what
    has earned another rung can still be trained, and gives what time is left over to the best that fit into it.
    """
    plan, standings = memory.plan, memory.standings
    maximise = [objective.maximise for objective in plan.objectives]
    is_full = memory.is_full(exhausted)
    short = not is_full and schedule.closes(standings, len(maximise))
    promotion = rungs.next_promotion(
        standings, len(plan.rungs), maximise, closing=is_full or short, fits=schedule.fits
    )
    if promotion is None and short:
        promotion = rungs.next_filler(standings, len(plan.rungs), maximise, schedule.fits)
    if promotion is not None:
        return Promote(*promotion)
    return Propose() if not is_full and schedule.fits_newcomer() else None
