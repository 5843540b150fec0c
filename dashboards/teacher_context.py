"""What the page of a search's teacher prints. It stands on no front, and was not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dashboards import words
from dashboards.candidate_context import recall
from dashboards.figures import palette, training
from search import executions, teacher
from search.store.read import candidates, jobs, results
from search.store.read.rows import (
    ArtifactView,
    AttemptView,
    CandidateRow,
    EpochView,
    EvaluationView,
    SearchRow,
)
from search.store.read.searches import search_by_name

if TYPE_CHECKING:
    from search.store.reader import Reader


@dataclass(frozen=True)
class TeacherData:
    """evaluations: the newest first."""

    search: SearchRow
    row: CandidateRow
    epochs: Sequence[EpochView]
    evaluations: Sequence[EvaluationView]
    attempts: Sequence[AttemptView]
    artifacts: Sequence[ArtifactView]


def load(reader: Reader, name: str) -> TeacherData:
    """Raises UserError for an unknown search, and for one without a teacher."""
    search = search_by_name(reader, name)
    row = candidates.teacher(reader, search.id) or candidates.find(reader, search.id, teacher.WORD)
    return TeacherData(
        search,
        row,
        results.epochs(reader, row.id),
        results.evaluations(reader, row.id),
        jobs.attempts(reader, row.id),
        results.artifacts(reader, search.id, row.id),
    )


def values(data: TeacherData) -> dict[str, Any]:
    """Everything that the templates print."""
    row = data.row
    newest = data.evaluations[0] if data.evaluations else None
    return {
        "search": data.search,
        "row": row,
        "told": teacher.words(teacher.known(data.search, row)),
        "state": str(row.state),
        "rebuild": words.rebuild(row.spec.model, row.spec.args),
        "analysis": [
            (name.replace("_", " "), words.scaled(float(value))) for name, value in row.analysis.items()
        ],
        "began": [("began from", row.spec.weights)] if row.spec.weights else [],
        "execution": executions.of(data.search, row),
        "epochs": data.epochs,
        "has_rungs": False,
        "evaluation": newest,
        "recall": [] if newest is None else recall(newest),
        "attempts": data.attempts,
        "files": data.artifacts,
        "folder": data.search.artifacts,
        "number": words.number,
        "interval": words.interval,
        "duration": words.duration,
    }


def chart(data: TeacherData) -> dict[str, Any]:
    """The learning curve, for the script: a figure a theme."""
    info = training.training_info(data.epochs, (), max(data.row.epoch, 1))
    return {
        "name": f"{data.search.name}-teacher",
        "looks": {key: {"curves": training.draw(info, theme)} for key, theme in palette.THEMES.items()},
    }
