"""Writes of what jobs found: measurements, evaluations, artifacts; and of events."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from search.states import REMOVED
from search.store.models import Artifact, Attempt, Candidate, EvaluationRow, Event, JobRow, MeasurementRow
from workers.job import CheckpointRef, Evaluation, Kind, Measurement
from workers.measure import samples


def add_measurement(
    session: Session,
    candidate: Candidate,
    measurement: Measurement,
    attempt: Attempt | None,
    source: MeasurementRow | None = None,
) -> MeasurementRow:
    """Keeps a measurement; `source` is the earlier row that a cached one repeats, whose time it keeps. That row has the
    samples."""
    row = MeasurementRow(
        search_id=candidate.search_id,
        candidate_id=candidate.id,
        attempt_id=attempt.id if attempt else None,
        source_id=source.id if source else None,
        digest=candidate.digest,
        protocol=measurement.protocol,
        device_id=measurement.device_id,
        threads=measurement.threads,
        runtime=measurement.runtime,
        precision=measurement.precision,
        batch_size=measurement.batch_size,
        figures=asdict(measurement) | {"flags": list(measurement.flags), "samples": ""},
        samples=samples.from_text(measurement.samples) if measurement.samples else None,
        time=source.time if source else time.time(),
    )
    session.add(row)
    return row


def add_reading(
    session: Session, reference: Candidate, measurement: Measurement, attempt: Attempt
) -> MeasurementRow:
    """Keeps a measurement that says how the device is; no candidate's figure, and never taken for one."""
    row = add_measurement(session, reference, measurement, attempt)
    row.candidate_id = None
    session.flush()
    return row


def add_foreign_measurement(
    session: Session, digest: str, measurement: Measurement, time: float, candidate: Candidate | None
) -> None:
    """Keeps what was measured on another machine at `time`, of a candidate or of a network that was named."""
    session.add(
        MeasurementRow(
            search_id=candidate.search_id if candidate else None,
            candidate_id=candidate.id if candidate else None,
            digest=digest,
            protocol=measurement.protocol,
            device_id=measurement.device_id,
            threads=measurement.threads,
            runtime=measurement.runtime,
            precision=measurement.precision,
            batch_size=measurement.batch_size,
            figures=asdict(measurement) | {"flags": list(measurement.flags)},
            time=time,
        )
    )


def cached_measurement(
    session: Session,
    digest: str,
    *,
    device_id: str,
    threads: int,
    runtime: str,
    precision: str,
    batch_size: int,
    protocol: str,
    cache: str,
    needs: Collection[str] = (),
) -> MeasurementRow | None:
    """The newest unflagged measurement of the same thing under the same conditions, of any search here; readings of
    references are none. cache: hot or cold; what was measured before it was kept is hot.
    needs: figures that may be null and must not be."""
    rows = session.scalars(
        select(MeasurementRow)
        .where(
            MeasurementRow.digest == digest,
            MeasurementRow.device_id == device_id,
            MeasurementRow.threads == threads,
            MeasurementRow.runtime == runtime,
            MeasurementRow.precision == precision,
            MeasurementRow.batch_size == batch_size,
            MeasurementRow.protocol == protocol,
            MeasurementRow.source_id.is_(None),
            ~_is_reading(),
        )
        .order_by(MeasurementRow.id.desc())
    )

    def serves(row: MeasurementRow) -> bool:
        is_so = row.figures.get("cache", "hot") == cache and not row.figures.get("flags")
        return is_so and all(row.figures.get(name) is not None for name in needs)

    return next(filter(serves, rows), None)


def _is_reading() -> ColumnElement[bool]:
    """Whether a measurement row is a reading of a reference."""
    job = select(JobRow.id).join(Attempt, Attempt.job_id == JobRow.id)
    return job.where(Attempt.id == MeasurementRow.attempt_id, JobRow.kind == Kind.REFERENCE).exists()


def as_measurement(row: MeasurementRow) -> Measurement:
    figures: dict[str, Any] = dict(row.figures)
    figures["flags"] = tuple(figures["flags"])
    return Measurement(**figures)


def add_evaluation(session: Session, candidate: Candidate, attempt: Attempt, evaluation: Evaluation) -> None:
    session.add(
        EvaluationRow(
            candidate_id=candidate.id,
            attempt_id=attempt.id,
            split=evaluation.split,
            epoch=evaluation.epoch,
            figures={
                key: list(value) if isinstance(value, tuple) else value
                for key, value in asdict(evaluation).items()
            },
            time=time.time(),
        )
    )


def add_checkpoint(
    session: Session, candidate: Candidate, attempt: Attempt, checkpoint: CheckpointRef
) -> None:
    session.add(
        Artifact(
            search_id=candidate.search_id,
            candidate_id=candidate.id,
            attempt_id=attempt.id,
            kind="checkpoint",
            path=checkpoint.path,
            epoch=checkpoint.epoch,
            sha256=checkpoint.sha256,
            num_bytes=checkpoint.num_bytes,
            time=time.time(),
        )
    )


def newest_checkpoint(session: Session, candidate: Candidate, up_to: int) -> CheckpointRef | None:
    """The candidate's checkpoint with the most epochs, but no more than `up_to`; of equals the newest."""
    row = session.scalars(
        select(Artifact)
        .where(Artifact.candidate_id == candidate.id, Artifact.kind == "checkpoint", Artifact.epoch <= up_to)
        .order_by(Artifact.epoch.desc(), Artifact.id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else CheckpointRef(row.path, row.epoch or 0, row.sha256, row.num_bytes)


def checkpoint_paths(session: Session, search_id: int) -> set[str]:
    """Paths, relative to the artifacts folder, that belong to the search."""
    return set(
        session.scalars(
            select(Artifact.path).where(Artifact.search_id == search_id, Artifact.kind == "checkpoint")
        )
    )


def forget_other_checkpoints(session: Session, candidate: Candidate, *keep: CheckpointRef) -> list[str]:
    """Drops the rows of a candidate's other checkpoints and returns their paths, for the files to go after commit."""
    rows = session.scalars(
        select(Artifact).where(
            Artifact.candidate_id == candidate.id,
            Artifact.kind == "checkpoint",
            Artifact.path.not_in([kept.path for kept in keep]),
        )
    ).all()
    for row in rows:
        session.delete(row)
    return [row.path for row in rows]


def checkpoints(session: Session, search_id: int) -> list[Artifact]:
    """All of a search."""
    query = select(Artifact).where(Artifact.search_id == search_id, Artifact.kind == "checkpoint")
    return list(session.scalars(query.order_by(Artifact.id)))


def remove_checkpoint(row: Artifact) -> None:
    """Marks one that is removed to make room; its file is to go after the commit, and goes with the next driver where
    this one does not live to do it."""
    row.kind = REMOVED


def was_removed(session: Session, candidate: Candidate, epoch: int) -> bool:
    """Whether a checkpoint of a candidate was removed to make room."""
    query = select(Artifact.id).where(Artifact.candidate_id == candidate.id, Artifact.epoch == epoch)
    return session.scalar(query.where(Artifact.kind == REMOVED).limit(1)) is not None


def add_event(
    session: Session, search_id: int | None, kind: str, text: str, candidate: int | None = None
) -> None:
    session.add(Event(search_id=search_id, time=time.time(), kind=kind, candidate=candidate, text=text))
