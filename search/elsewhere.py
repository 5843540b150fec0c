"""Networks measured on machines without paretovit: which of a search are carried there, and what becomes of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import Session

from search.errors import UserError
from search.front import front_view
from search.states import CandidateState
from search.store.models import Candidate, MeasurementRow, Search
from search.store.read.candidates import find
from search.store.read.rows import CandidateRow, SearchRow
from search.store.reader import Reader
from search.store.session import Store
from search.store.write import results as writes
from workers.elsewhere.carrying import Entry
from workers.elsewhere.results import Found, Results

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Kept:
    """new: measurements that were stored. known: those that the database had already."""

    new: tuple[Found, ...]
    known: int


def entries(reader: Reader, search: SearchRow, which: Sequence[str]) -> list[Entry]:
    """The candidates and baselines that were named; without names the front and the baselines.

    Raises UserError for what is not there, and for a front that is empty.
    """
    if which:
        rows = list({row.id: row for row in (find(reader, search.id, name) for name in which)}.values())
    else:
        view = front_view(reader, search)
        if not view.front:
            raise UserError(f"{search.name}: nothing is on its front yet; name candidates by their numbers")
        rows = [point.row for point in (*view.front, *view.baselines)]
        rows = [row for row in rows if row.state != CandidateState.FAILED]
    return [Entry(_shown(search, row), row.spec, search.name, row.number) for row in rows]


def images(search: SearchRow) -> np.ndarray | None:
    """A few training images of the search, uint8 [n, height, width, channels]; None where they are not on this
    machine any more."""
    from search.config import from_stored
    from workers.data import dataset
    from workers.data.listing import DataError
    from workers.elsewhere.carrying import NUM_IMAGES

    try:
        found = dataset.index(from_stored(search.config).data)
        if found.digest != search.data["digest"]:
            return None
        return found.listing.decode(found.splits["train"][:NUM_IMAGES], lambda: None)
    except DataError:
        return None


def keep(store: Store, results: Results, path: Path) -> Kept:
    """Stores results, all or none. path: their file, for messages.

    Raises UserError where a candidate is not in this database, or is another architecture there.
    """

    def work(session: Session) -> Kept:
        new = [found for found in results.found if _keep(session, found, path)]
        return Kept(tuple(new), len(results.found) - len(new))

    return store.write(work)


def _keep(session: Session, found: Found, path: Path) -> bool:
    """False where it is there already."""
    candidate = None if found.search is None else _candidate(session, found, path)
    measurement = found.measurement
    same = select(MeasurementRow.id).where(
        MeasurementRow.digest == found.spec.digest,
        MeasurementRow.device_id == measurement.device_id,
        MeasurementRow.batch_size == measurement.batch_size,
        MeasurementRow.protocol == measurement.protocol,
        MeasurementRow.time == found.time,
    )
    if session.scalars(same).first() is not None:
        return False
    writes.add_foreign_measurement(session, found.spec.digest, measurement, found.time, candidate)
    return True


def _candidate(session: Session, found: Found, path: Path) -> Candidate:
    row = session.scalars(
        select(Candidate)
        .join(Search, Search.id == Candidate.search_id)
        .where(Search.name == found.search, Candidate.number == found.candidate)
    ).one_or_none()
    if row is None:
        raise UserError(f"{path}: {found.name}: is not in this database; give the one of the search by --db")
    if row.digest != found.spec.digest:
        raise UserError(
            f"{path}: {found.name}: digest: {found.spec.digest}, and {row.digest} in this database"
        )
    return row


def _shown(search: SearchRow, row: CandidateRow) -> str:
    return f"{row.name if row.is_baseline else f'#{row.number}'} of {search.name}"
