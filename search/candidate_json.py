"""One candidate with everything that is known of it, as plain data: what `show --json` and the REST API give."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from search import began, executions, rungs, screened, teacher
from search.front import FrontPoint, front_view
from search.store.read import candidates, jobs, results
from search.store.read.rows import AttemptView, CandidateRow, EpochView, MeasurementView, SearchRow
from search.store.read.status import iso

if TYPE_CHECKING:
    from search.store.reader import Reader


def candidate_dict(reader: Reader, search: SearchRow, which: str) -> dict[str, Any]:
    """The object that `show NAME CANDIDATE --json` prints. which: a number, or a baseline's name.

    Raises UserError, naming what there is, for an unknown one.
    """
    row = candidates.find(reader, search.id, which)
    view = front_view(reader, search)
    point = next(p for p in (*view.baselines, *view.candidates) if p.row.id == row.id)
    settings = search.config["search"]
    epochs = search.config["training"]["epochs"]
    budgets = rungs.resolve(settings["rungs"], epochs, settings["sampler"])
    return {
        "search": search.name,
        **_known(point),
        "point": dict(row.point),
        "module": point.module,
        "analysis": dict(row.analysis),
        "epochs_in_full": epochs,
        "by_rung": {str(budgets[index]): dict(values) for index, values in sorted(row.by_rung.items())},
        "measured_how": view.measured_how_of(point),
        "epochs": epochs_of(reader, row),
        "evaluations": _evaluations(reader, row),
        "measurements": measurements_of(reader, row),
        "attempts": attempts_of(reader, row),
        "artifacts": _artifacts(reader, search, row),
        "teacher": teacher.of_candidate(reader, search, row),
        "execution": _execution(search, row),
        "weights": began.of_candidate(reader, search, row).weights,
        "screen": screened.remark(search.data.get(screened.RECORD), row.number),
    }


def teacher_dict(reader: Reader, search: SearchRow) -> dict[str, Any] | None:
    """The object that `show NAME teacher --json` prints; None in a search without one."""
    row = candidates.teacher(reader, search.id)
    if row is None:
        return None
    return {
        "search": search.name,
        **teacher.known(search, row),
        "execution": _execution(search, row),
        "spec": row.spec.to_dict(),
        "digest": row.digest,
        "analysis": dict(row.analysis),
        "epoch": row.epoch,
        "epochs": epochs_of(reader, row),
        "evaluations": _evaluations(reader, row),
        "attempts": attempts_of(reader, row),
        "artifacts": _artifacts(reader, search, row),
    }


def epochs_of(reader: Reader, row: CandidateRow) -> list[dict[str, Any]]:
    """Its learning curve: one object an epoch, in order."""
    return [_epoch(epoch) for epoch in results.epochs(reader, row.id)]


def measurements_of(reader: Reader, row: CandidateRow) -> list[dict[str, Any]]:
    """Its measurements with their conditions, the newest first."""
    return [
        {name: value for name, value in found.figures.items() if name != "samples"}
        | {"time": iso(found.time), "cached": found.is_cached, "age_seconds": _age(found)}
        for found in results.measurements(reader, row.id)
    ]


def _age(found: MeasurementView) -> int | None:
    """Of a figure that was taken over, seconds."""
    return max(0, round(time.time() - found.time)) if found.is_cached else None


def attempts_of(reader: Reader, row: CandidateRow) -> list[dict[str, Any]]:
    """The attempts at its jobs, in the order of their start."""
    return [_attempt(attempt) for attempt in jobs.attempts(reader, row.id)]


def _known(point: FrontPoint) -> dict[str, Any]:
    row = point.row
    return point.to_dict() | {"name": row.name, "created": iso(row.created), "ended": iso(row.ended)}


def _execution(search: SearchRow, row: CandidateRow) -> dict[str, Any] | None:
    choice = executions.of(search, row)
    return None if choice is None else choice.known


def _evaluations(reader: Reader, row: CandidateRow) -> list[dict[str, Any]]:
    return [dict(found.figures) | {"time": iso(found.time)} for found in results.evaluations(reader, row.id)]


def _artifacts(reader: Reader, search: SearchRow, row: CandidateRow) -> list[dict[str, Any]]:
    return [
        {
            "kind": found.kind,
            "path": f"{search.artifacts}/{found.path}",
            "epoch": found.epoch,
            "num_bytes": found.num_bytes,
        }
        for found in results.artifacts(reader, search.id, row.id)
    ]


def _epoch(epoch: EpochView) -> dict[str, Any]:
    return {
        "epoch": epoch.epoch,
        "train_loss": epoch.train_loss,
        "val_loss": epoch.val_loss,
        "accuracy": epoch.accuracy,
        "interval": [epoch.accuracy_low, epoch.accuracy_high],
        "learning_rate": epoch.learning_rate,
        "seconds": epoch.seconds,
        "pause_seconds": epoch.pause_seconds,
    }


def _attempt(attempt: AttemptView) -> dict[str, Any]:
    return {
        "job": attempt.job,
        "kind": attempt.kind,
        "attempt": attempt.number,
        "state": str(attempt.state),
        "reason": attempt.reason,
        "detail": attempt.detail,
        "host": attempt.host,
        "pid": attempt.pid,
        "started": iso(attempt.started),
        "ended": iso(attempt.ended),
        "seconds": attempt.seconds,
    }
