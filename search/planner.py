"""What still fits before a search has to end, and when it has to stop proposing so that it ends in a front. Pure.

Times are seconds; what is not known yet (None) is let through, because the first jobs have nothing to go by. A training
that turns out longer than was predicted is ended at an epoch's end (`must_stop`), and keeps what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from search import rungs
from search.lengths import Length
from search.rungs import Standing

LAST_CALL_SECONDS = 5.0
"""Before the end: nothing starts that nothing is known of."""
GRACE_SECONDS = 20.0
"""After the end: what still runs is given up."""
_EPOCH_MARGIN = 1.1
_CLOSING_MARGIN = 1.1

Predict = Callable[[int, int], Length | None]
"""(candidate, rung to train to) -> how long that takes."""


@dataclass(frozen=True)
class Planner:
    """end: when the last job has to have ended, UTC seconds; None where nothing limits the time. workers: jobs at a
    time."""

    end: float | None = None
    workers: int = 1

    def left(self, now: float) -> float:
        """Seconds until the end; infinite without one."""
        return float("inf") if self.end is None else self.end - now

    def fits(self, length: Length | None, now: float) -> bool:
        """Whether a job that starts now ends in time, nine times in ten or more."""
        left = self.left(now)
        return left > LAST_CALL_SECONDS if length is None else length.high <= left

    def must_stop(self, epoch_seconds: float, now: float) -> bool:
        """Whether a training's next epoch would end too late. epoch_seconds: of the last one."""
        return _EPOCH_MARGIN * epoch_seconds > self.left(now)

    def is_overdue(self, now: float) -> bool:
        """Whether what still runs has to be given up."""
        return self.left(now) < -GRACE_SECONDS

    def closes(
        self,
        now: float,
        standings: Collection[Standing],
        num_rungs: int,
        num_objectives: int,
        predict: Predict,
        running: Sequence[float] = (),
    ) -> bool:
        """Whether from now on the time is needed for what has earned, or will earn, another rung.

        running: seconds that each running job still takes.
        """
        if self.end is None:
            return False
        needed = closing_seconds(standings, num_rungs, num_objectives, self.workers, predict, running)
        return _CLOSING_MARGIN * needed >= self.left(now)


def closing_seconds(
    standings: Collection[Standing],
    num_rungs: int,
    num_objectives: int,
    workers: int,
    predict: Predict,
    running: Sequence[float] = (),
) -> float:
    """How long a search takes to end in a front once nothing is proposed any more: rung by rung, those that are on
    their way, then those that `rungs.quota` lets through. What is not known counts as nothing."""
    total = max(running, default=0.0)
    inherited = 0
    for rung in range(num_rungs - 1):
        there = [s for s in standings if rung in s.scores or (s.coming and s.reached == rung)]
        promoted = sum(s.reached > rung for s in there)
        more = max(0, rungs.quota(len(there) + inherited, num_objectives) - promoted)
        lengths = [predict(s.number, rung + 1) for s in there if s.reached == rung]
        known = sorted(length.seconds for length in lengths if length is not None)
        if known:
            total += -(-more // workers) * known[len(known) // 2]
        inherited = more
    return total
