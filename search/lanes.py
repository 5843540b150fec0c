"""A driver for engines that measure on one machine and train on others: each asks for jobs of its own kind."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from sqlalchemy.orm import Session

from search.dispatch import Dispatcher
from search.driver import Driver, Idle
from search.store.write import jobs
from workers.job import MEASURING, Job


class Lane(Enum):
    """Who asks: what measures, or what does everything else."""

    MEASURE = "measure"
    TRAIN = "train"

    def takes(self, kind: str) -> bool:
        return (kind in MEASURING) == (self is Lane.MEASURE)


@dataclass(frozen=True)
class _OfOneLane(Dispatcher):
    """Leaves the jobs of the other lane aside. aside: takes the jobs that are parked."""

    lane: Lane = Lane.TRAIN
    aside: set[int] = field(default_factory=set)

    def next(self, session: Session, parked: Collection[int]) -> Job | None:
        self.aside.clear()
        self.aside.update(parked)
        others = {row.id for row in jobs.pending(session, self.search_id) if not self.lane.takes(row.kind)}
        return super().next(session, {*parked, *others})


@dataclass
class LanedDriver(Driver):
    """Asked by `next_of`. What measures proposes too, one candidate after another, so that no more of them wait for it
    than it can measure; what trains decides when the search ends, and alone gives WAIT or FINISHED a meaning."""

    _lane: Lane | None = None
    _held_back: bool = False
    _looked: bool = False
    _aside: set[int] = field(default_factory=set)

    def next_of(self, lane: Lane) -> Job | Idle:
        """As `next_job`, for one lane. The last job of a search may be a measurement whoever asks."""
        self._lane, self._held_back, self._looked = lane, False, False
        try:
            return self.next_job()
        finally:
            self._lane = None

    @property
    def _dispatcher(self) -> Dispatcher:
        found = super()._dispatcher
        self._looked = True
        if self._lane is None:
            return found
        return _OfOneLane(**vars(found), lane=self._lane, aside=self._aside)

    def _propose(self) -> bool:
        if self._lane is Lane.TRAIN:
            self._held_back = True
            return False
        return super()._propose()

    def _is_running(self) -> bool:
        """Whether the search goes on without a job for who asks."""
        if self._lane is Lane.MEASURE or super()._is_running():
            return True
        # A search that is over, for whatever reason, looks for no job: then nothing is waited for.
        return self._lane is Lane.TRAIN and self._looked and (self._held_back or self._measures_wait())

    def _measures_wait(self) -> bool:
        def work(session: Session, _: object) -> bool:
            waiting = jobs.pending(session, self.search_id, self._aside)
            return any(Lane.MEASURE.takes(row.kind) for row in waiting)

        return self._write(work)
