"""What jobs found: epochs, measurements, evaluations, artifacts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from search.store.read.rows import ArtifactView, EpochView, EvaluationView, MeasurementView
from search.store.reader import Reader, Row, changed, decode, fetch
from workers.measure.samples import unpack

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_EPOCH = """
SELECT epoch.candidate_id, epoch.epoch, epoch.train_loss, epoch.val_loss, epoch.accuracy, epoch.accuracy_low,
       epoch.accuracy_high, epoch.learning_rate, epoch.seconds, epoch.pause_seconds, epoch.time
FROM epoch JOIN attempt ON attempt.id = epoch.attempt_id
"""
_BELIEVED = """attempt.state IN ('done', 'running') ORDER BY epoch.candidate_id, epoch.epoch,
       CASE attempt.state WHEN 'done' THEN 0 ELSE 1 END, epoch.id DESC"""
_MEASUREMENT = """
SELECT id, candidate_id, digest, protocol, device_id, threads, runtime, precision, batch_size, figures,
source_id, time FROM measurement
"""
_EVALUATION = """
SELECT evaluation.id, candidate_id, split, evaluation.epoch, figures, time FROM evaluation
"""
_ARTIFACT = "SELECT id, candidate_id, kind, path, epoch, sha256, num_bytes, time FROM artifact"


def epochs(session: Reader | Session, candidate_id: int) -> list[EpochView]:
    """One candidate's epochs in order, each once: of done attempts, else of the running one."""
    rows = fetch(session, f"{_EPOCH} WHERE epoch.candidate_id = :id AND {_BELIEVED}", id=candidate_id)
    return _each_once(rows)


def curves(session: Reader | Session, search_id: int) -> dict[int, list[EpochView]]:
    """Candidate's row id -> its epochs, of all candidates and baselines of a search that have any."""
    sql = f"""{_EPOCH} JOIN candidate ON candidate.id = epoch.candidate_id
              WHERE candidate.search_id = :search AND candidate.role <> 'teacher' AND {_BELIEVED}"""
    found: dict[int, list[EpochView]] = {}
    for epoch in _each_once(fetch(session, sql, search=search_id)):
        found.setdefault(epoch.candidate_id, []).append(epoch)
    return found


def num_epochs(session: Reader | Session, search_id: int) -> int:
    """Epochs trained in a search, baselines included; those of lost attempts do not count."""
    sql = """SELECT COUNT(*) AS num FROM epoch JOIN attempt ON attempt.id = epoch.attempt_id
             JOIN job ON job.id = attempt.job_id
             WHERE job.search_id = :search AND attempt.state IN ('done', 'running')"""
    return int(fetch(session, sql, search=search_id)[0]["num"])


def measurements(session: Reader | Session, candidate_id: int) -> list[MeasurementView]:
    """All measurements of one candidate (by row id), the newest first."""
    sql = f"{_MEASUREMENT} WHERE candidate_id = :id ORDER BY id DESC"
    return [_measurement(row) for row in fetch(session, sql, id=candidate_id)]


def measurements_of_search(
    session: Reader | Session, search_id: int, device_id: str | None = None
) -> list[MeasurementView]:
    """All measurements of a search's candidates, the newest first; on one device where one is given."""
    where = "search_id = :search AND candidate_id IS NOT NULL"
    values: dict[str, Any] = {"search": search_id}
    if device_id is not None:
        where, values = f"{where} AND device_id = :device", values | {"device": device_id}
    sql = f"{_MEASUREMENT} WHERE {where} ORDER BY id DESC"
    return [_measurement(row) for row in fetch(session, sql, **values)]


def samples(session: Reader | Session, measurement_id: int) -> tuple[float, ...]:
    """The single timings behind a measurement (by row id), ms, in order; of one taken over, those of the earlier one.
    Empty where none were kept."""
    sql = """SELECT COALESCE(m.samples, source.samples) AS samples FROM measurement AS m
             LEFT JOIN measurement AS source ON source.id = m.source_id WHERE m.id = :id"""
    rows = fetch(session, sql, id=measurement_id)
    packed = rows[0]["samples"] if rows else None
    return () if packed is None else unpack(bytes(packed))


def evaluations(session: Reader | Session, candidate_id: int) -> list[EvaluationView]:
    """All evaluations of one candidate (by row id), the newest first."""
    sql = f"{_EVALUATION} WHERE candidate_id = :id ORDER BY evaluation.id DESC"
    rows = fetch(session, sql, id=candidate_id)
    return [EvaluationView(**changed(row, figures=decode("evaluation", row, "figures"))) for row in rows]


def artifacts(
    session: Reader | Session, search_id: int, candidate_id: int | None = None
) -> list[ArtifactView]:
    """Files of a search, or of one of its candidates (by row id), in the order of their writing."""
    where = "search_id = :search" + ("" if candidate_id is None else " AND candidate_id = :id")
    values = {"search": search_id} | ({} if candidate_id is None else {"id": candidate_id})
    rows = fetch(session, f"{_ARTIFACT} WHERE {where} ORDER BY id", **values)
    return [ArtifactView(**row) for row in rows]


def _each_once(rows: Iterable[Row]) -> list[EpochView]:
    first: dict[tuple[int, int], EpochView] = {}
    for row in rows:
        first.setdefault((row["candidate_id"], row["epoch"]), EpochView(**row))
    return list(first.values())


def _measurement(row: Row) -> MeasurementView:
    values = {key: value for key, value in row.items() if key != "source_id"}
    cached = row["source_id"] is not None
    return MeasurementView(**changed(values, figures=decode("measurement", row, "figures"), is_cached=cached))
