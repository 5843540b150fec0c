"""Room on the disk that a search writes to: whether there is enough for a job, and what is removed to make some."""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from search.front import FrontPoint, Standing, front_view
from search.holding import is_held
from search.ledger import Write
from search.plan import Plan
from search.schedule import Schedule
from search.states import SearchState
from search.store.models import Artifact, Search
from search.store.read.searches import search_by_name
from search.store.write import jobs, results
from search.thinning import Group, Stored, choose

LOOK_SECONDS = 3.0
"""How often it is looked at what is free."""
MARGIN = 1.1
"""So many times the reserve is made free, so that the next job does not take it up again."""
NEARLY, WELL_BELOW = 0.9, 0.8
"""From so much of a budget of checkpoints on some are removed, down to so much."""
_GB = 1e9
_GROUPS = {
    Standing.OUTSIDE: Group.OUTSIDE,
    Standing.DOMINATED: Group.DOMINATED,
    Standing.FAILED: Group.FAILED,
    Standing.STOPPED: Group.STOPPED,
}


def free_bytes(folder: Path) -> int:
    """Of the file system that a folder is on, or will be."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free


@dataclass
class Room:
    """Of one driver. write: one transaction under the lease. tell: told in words what happens."""

    search_id: int
    plan: Plan
    schedule: Schedule
    write: Write
    tell: Callable[[str], None]
    _looked: float = -math.inf
    _seen_gb: float = 0.0
    _is_short: bool = False

    def is_short(self) -> bool:
        """Whether no job may start for want of room. First what may go is removed; looks every few seconds."""
        self._keep_budget()
        now = self.schedule.clock.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return self._is_short
        self._looked = now
        free = free_bytes(self.artifacts) / _GB
        if free < self._reserve_gb and self._thin(MARGIN * self._reserve_gb - free):
            free = free_bytes(self.artifacts) / _GB
        self._note(free)
        return self._is_short

    @property
    def artifacts(self) -> Path:
        return self.schedule.spending.artifacts

    @property
    def _reserve_gb(self) -> float:
        return self.plan.settings.limits.disk_reserve_gb

    def _keep_budget(self) -> None:
        most_gb = self.schedule.limits.disk_gb
        if most_gb == math.inf:
            return
        used = self.schedule.spending.disk_gb
        if used < NEARLY * most_gb or used == self._seen_gb:
            return
        self._seen_gb = used
        self._thin(used - WELL_BELOW * most_gb)

    def _note(self, free_gb: float) -> None:
        """Writes down that the search begins to wait, or goes on."""
        is_short = free_gb < self._reserve_gb
        if is_short == self._is_short:
            return
        self._is_short = is_short
        text = f"there is room again: {free_gb:.3g} GB are free; the search goes on"
        if is_short:
            text = (
                f"waits for room: {free_gb:.3g} GB are free at {self.artifacts}, less than limits.disk_reserve_gb "
                f"({self._reserve_gb:g}); it goes on by itself when there is more"
            )

        def work(session: Session, search: Search) -> None:
            if search.state == SearchState.RUNNING:
                search.reason = text if is_short else None
            results.add_event(session, self.search_id, "disk", text)

        self.write(work)
        self.tell(text)

    def _thin(self, gigabytes: float) -> bool:
        """Removes checkpoints by the policy of `search.thinning`. True when there were any."""

        def work(session: Session, search: Search) -> list[str]:
            return self._drop(session, search, gigabytes * _GB)

        paths = self.write(work)
        sizes = []
        for path in (self.artifacts / name for name in paths):
            sizes.append(path.stat().st_size if path.exists() else 0)
            path.unlink(missing_ok=True)
        if not paths:
            return False
        self.schedule.spending.look_again()
        self.tell(f"{len(paths)} checkpoint(s), {sum(sizes) / 1e6:.3g} MB, were removed to make room")
        return True

    def _drop(self, session: Session, search: Search, num_bytes: float) -> list[str]:
        """Marks the rows whose files are to go, and says so in an event of each candidate; returns their paths."""
        kept: dict[int, list[Artifact]] = defaultdict(list)
        for row in results.checkpoints(session, self.search_id):
            if row.candidate_id is not None:
                kept[row.candidate_id].append(row)
        view = front_view(session, search_by_name(session, search.name))
        names = [quantity.name for quantity in view.objectives]
        needed = jobs.open_candidates(session, self.search_id)
        stored = [
            self._stored(point, kept[point.row.id], names, needed)
            for point in view.candidates
            if point.row.id in kept
        ]
        ids = {point.row.number: point.row.id for point in view.candidates}
        paths = []
        for one in choose(stored, [quantity.maximise for quantity in view.objectives], num_bytes):
            for row in kept[ids[one.number]]:
                results.remove_checkpoint(row)
                paths.append(row.path)
            text = (
                f"its checkpoint of epoch {one.epoch} ({one.num_bytes / 1e6:.3g} MB) was removed to make room"
            )
            results.add_event(session, self.search_id, "thinned", text, one.number)
        return paths

    def _stored(self, point: FrontPoint, rows: list[Artifact], names: list[str], needed: set[int]) -> Stored:
        paths = [self.artifacts / row.path for row in rows]
        group = None if point.row.id in needed or any(map(is_held, paths)) else _GROUPS.get(point.standing)
        values = tuple(point.values[name] for name in names) if group is Group.DOMINATED else ()
        size = sum(path.stat().st_size for path in paths if path.exists())
        return Stored(point.row.number, group, size, point.row.epoch, values)
