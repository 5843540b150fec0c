"""Whether anything that is shown of a search has changed, found out without reading it all.

A revision is a digest of what moves whenever a figure does: states, counts and the newest rows. Results are only ever
added together with the end of an attempt, and epochs only to a running one, so neither table has to be counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from search import budget
from search.store.read import queue
from search.store.read.rows import SearchRow
from search.store.read.searches import searches
from search.store.reader import Reader, fetch

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_CANDIDATES = """
SELECT search_id, state, COUNT(*) AS num FROM candidate {where} GROUP BY search_id, state ORDER BY search_id, state
"""
_JOBS = """
SELECT search_id, state, COUNT(*) AS num, MAX(id) AS newest FROM job {where}
GROUP BY search_id, state ORDER BY search_id, state
"""
_RUNNING = """
SELECT job.search_id AS search_id, attempt.id,
       (SELECT MAX(epoch.epoch) FROM epoch WHERE epoch.attempt_id = attempt.id) AS epoch
FROM attempt JOIN job ON job.id = attempt.job_id WHERE attempt.state = 'running' {also} ORDER BY attempt.id
"""
_ASKED = "SELECT search_id, id, kind FROM request {where} {also} done IS NULL ORDER BY search_id, id"
_QUEUED = """
SELECT search_id, id, state, held, reason, priority, "window" FROM queue WHERE search_id IS NOT NULL {also} ORDER BY id
"""
_NEWEST = "SELECT search_id, MAX(id) AS newest FROM {table} {where} GROUP BY search_id ORDER BY search_id"


def revision(session: Reader | Session, search: SearchRow) -> str:
    """The revision of one search: another one as soon as anything that is shown of it has changed."""
    return _digest(search, _rows(session, search.id).get(search.id, []))


def revisions(session: Reader | Session) -> dict[str, str]:
    """Name -> revision, of all searches; the same that `revision` gives of each."""
    rows = _rows(session, None)
    return {search.name: _digest(search, rows.get(search.id, [])) for search in searches(session)}


def revision_of_queue(session: Reader | Session) -> str:
    """Another one as soon as anything that is shown of the queue has changed."""
    rows = [
        (r.id, r.name, r.search_id, r.priority, r.window, str(r.state), r.held, r.reason)
        for r in queue.active(session)
    ]
    return _short([rows, queue.has_runner(session)])


def revision_of_all(revisions: Mapping[str, str]) -> str:
    """One revision for the list of all searches."""
    return _short(sorted(revisions.items()))


def _rows(session: Reader | Session, search_id: int | None) -> dict[int, list[Any]]:
    """Search's id -> rows that stand for it."""
    one = search_id is not None
    where, also = ("WHERE search_id = :search", "AND job.search_id = :search") if one else ("", "")
    values = {"search": search_id} if one else {}
    statements = [_CANDIDATES.format(where=where), _JOBS.format(where=where), _RUNNING.format(also=also)]
    statements += [
        _ASKED.format(where=where or "WHERE", also="AND" if one else ""),
        _QUEUED.format(also="AND search_id = :search" if one else ""),
    ]
    statements += [
        _NEWEST.format(table=table, where=where or "WHERE search_id IS NOT NULL")
        for table in ("event", "artifact")
    ]
    found: dict[int, list[Any]] = {}
    for place, statement in enumerate(statements):
        for row in fetch(session, statement, **values):
            found.setdefault(row["search_id"], []).append((place, *row.values()))
    return found


def _digest(search: SearchRow, rows: Iterable[Any]) -> str:
    moments = (search.created, search.started, search.ended, search.deadline)
    shown = {key: value for key, value in search.data.items() if key != budget.RECORD}
    described = (str(search.state), search.reason, search.config, shown, search.device_id)
    return _short([search.id, moments, described, *rows])


def _short(value: Any) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()
