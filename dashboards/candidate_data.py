"""One candidate or baseline with everything that is known of it, read from the database once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search import rungs
from search.began import Began, of_candidate
from search.front import FrontPoint, FrontView, front_view
from search.store.read import candidates, jobs, results
from search.store.read.rows import (
    ArtifactView,
    AttemptView,
    CandidateRow,
    EpochView,
    EvaluationView,
    MeasurementView,
    SearchRow,
)
from search.store.read.searches import search_by_name

if TYPE_CHECKING:
    from search.store.reader import Reader


@dataclass(frozen=True)
class CandidateData:
    """began: what its training began from and learnt from. evaluations, measurements: the newest first. rungs:
    cumulative epochs. full: epochs of a full training."""

    view: FrontView
    point: FrontPoint
    began: Began
    epochs: Sequence[EpochView]
    evaluations: Sequence[EvaluationView]
    measurements: Sequence[MeasurementView]
    attempts: Sequence[AttemptView]
    artifacts: Sequence[ArtifactView]
    rungs: Sequence[int]
    full: int

    @property
    def search(self) -> SearchRow:
        return self.view.search

    @property
    def row(self) -> CandidateRow:
        return self.point.row


def load(reader: Reader, name: str, number: int) -> CandidateData:
    """number: negative for a baseline. Raises UserError, naming what there is, for an unknown search or number."""
    search = search_by_name(reader, name)
    row = candidates.candidate(reader, search.id, number)
    view = front_view(reader, search)
    settings, full = search.config["search"], search.config["training"]["epochs"]
    return CandidateData(
        view=view,
        point=next(point for point in (*view.baselines, *view.candidates) if point.row.id == row.id),
        began=of_candidate(reader, search, row),
        epochs=results.epochs(reader, row.id),
        evaluations=results.evaluations(reader, row.id),
        measurements=results.measurements(reader, row.id),
        attempts=jobs.attempts(reader, row.id),
        artifacts=results.artifacts(reader, search.id, row.id),
        rungs=rungs.resolve(settings["rungs"], full, settings["sampler"]),
        full=full,
    )
