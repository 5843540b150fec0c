"""What one search has spent so far, counted on from what its earlier drivers spent."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from search.budget import RECORD, Spent
from search.clock import CLOCK, Clock
from search.store.models import Attempt, Epoch, JobRow, Search

_DISK_SECONDS = 10.0
_JOULES_A_KWH = 3.6e6


@dataclass
class Spending:
    """artifacts: the folder of the search. joules: a counter of the device's energy; None where it has none."""

    artifacts: Path
    joules: Callable[[], float] | None = None
    clock: Clock = CLOCK
    _before: Spent = field(default_factory=Spent)
    _began: float = 0.0
    _joules: float = 0.0
    _busy: float = 0.0
    _epochs: int = 0
    _disk: tuple[float, float] = (float("-inf"), 0.0)

    def begin(self, session: Session, search: Search) -> None:
        """Takes up what was spent before."""
        kept = search.data.get(RECORD, {})
        of_search = JobRow.search_id == search.id
        busy = select(func.sum(Attempt.seconds)).join(JobRow, JobRow.id == Attempt.job_id).where(of_search)
        epochs = (
            select(func.count(Epoch.id))
            .join(Attempt, Attempt.id == Epoch.attempt_id)
            .join(JobRow, JobRow.id == Attempt.job_id)
            .where(of_search)
        )
        self._before = Spent(
            hours=kept.get("hours", 0.0),
            device_hours=(session.scalar(busy) or 0.0) / 3600,
            epochs=session.scalar(epochs) or 0,
            energy_kwh=kept.get("energy_kwh", 0.0),
        )
        self._began = self.clock.monotonic()
        self._joules = self.joules() if self.joules else 0.0

    def keep(self, search: Search) -> None:
        """Writes down what no other row tells."""
        now = self.now()
        kept: dict[str, Any] = {"hours": now.hours}
        if self.joules is not None:
            kept["energy_kwh"] = now.energy_kwh
        search.data = {**search.data, RECORD: kept}

    def job_ended(self, seconds: float) -> None:
        """A worker was in a job for so long."""
        self._busy += seconds

    def epochs_ended(self, number: int) -> None:
        """So many that were not heard of before."""
        self._epochs += number

    def now(self, running: Collection[float] = (), *, weighs: bool = False) -> Spent:
        """running: seconds since each running job began. weighs: whether to look at the disk too."""
        drawn = 0.0 if self.joules is None else self.joules() - self._joules
        return Spent(
            hours=self._before.hours + (self.clock.monotonic() - self._began) / 3600,
            device_hours=self._before.device_hours + (self._busy + sum(running)) / 3600,
            epochs=self._before.epochs + self._epochs,
            energy_kwh=self._before.energy_kwh + drawn / _JOULES_A_KWH,
            disk_gb=self.disk_gb if weighs else 0.0,
        )

    @property
    def disk_gb(self) -> float:
        """Of checkpoints; looked at every few seconds."""
        now = self.clock.monotonic()
        if now - self._disk[0] > _DISK_SECONDS:
            sizes = (path.stat().st_size for path in self.artifacts.rglob("*.safetensors") if path.exists())
            self._disk = (now, sum(sizes) / 1e9)
        return self._disk[1]

    def look_again(self) -> None:
        """Checkpoints were removed."""
        self._disk = (float("-inf"), 0.0)
