"""Epochs as they come, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.store.reader import Reader, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True)
class EpochLine:
    """One epoch of one attempt. time: UTC seconds."""

    id: int
    time: float
    text: str


def newest_epoch(session: Reader | Session, search_id: int) -> int:
    """The id of the last epoch of a search; 0 before there is one."""
    sql = """SELECT MAX(epoch.id) AS newest FROM epoch JOIN candidate ON candidate.id = epoch.candidate_id
             WHERE candidate.search_id = :search"""
    return fetch(session, sql, search=search_id)[0]["newest"] or 0


def epochs_after(session: Reader | Session, search_id: int, after: int, limit: int = 1000) -> list[EpochLine]:
    """Epochs with a higher id than `after`, in order."""
    sql = f"""SELECT epoch.id, epoch.time, epoch.epoch, epoch.accuracy, job.last_epoch, candidate.number,
                     candidate.name, candidate.family
              FROM epoch JOIN candidate ON candidate.id = epoch.candidate_id
              JOIN attempt ON attempt.id = epoch.attempt_id JOIN job ON job.id = attempt.job_id
              WHERE candidate.search_id = :search AND epoch.id > :after ORDER BY epoch.id LIMIT {int(limit)}"""
    found = []
    for row in fetch(session, sql, search=search_id, after=after):
        who = row["name"] or f"#{row['number']} {row['family']}"
        text = f"{who}: epoch {row['epoch']} of {row['last_epoch']}, accuracy {row['accuracy']:.3f}"
        found.append(EpochLine(row["id"], row["time"], text))
    return found
