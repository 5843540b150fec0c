"""How a search stands, as `status` shows it: state, counts, and the best so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from search import executions, foreseen, screened, waiting
from search.front import front_view
from search.states import JobState, SearchState
from search.store.read.candidates import candidate
from search.store.read.drift import told
from search.store.read.results import num_epochs
from search.store.read.rows import SearchRow
from search.store.read.searches import search_by_name, searches
from search.store.read.status import candidate_counts, iso, job_counts
from search.store.reader import Reader
from search.teacher import teacher_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def status(session: Reader | Session, name: str) -> dict[str, Any]:
    """The object that `status NAME --json` prints, also of a search that waits for its begin. Raises UserError for an
    unknown name."""
    return next(iter(waiting.not_begun(session, name)), None) or status_of(
        session, search_by_name(session, name)
    )


def statuses(session: Reader | Session) -> list[dict[str, Any]]:
    """The same of all: first those that wait for their begin, then the others, the newest first."""
    return [*waiting.not_begun(session), *(status_of(session, row) for row in searches(session))]


def status_of(session: Reader | Session, search: SearchRow) -> dict[str, Any]:
    """Counts hold every state, with 0 where there is none. Times are ISO 8601, UTC.

    best: on the front, by the first objective; None before there is a front. What ran in an interrupted search is
    counted as pending, which it will be when the search is resumed.
    """
    jobs = job_counts(session, search.id)
    if search.state == SearchState.INTERRUPTED:
        jobs[JobState.PENDING] += jobs[JobState.RUNNING]
        jobs[JobState.RUNNING] = 0
    counts, epochs = candidate_counts(session, search.id), num_epochs(session, search.id)
    return {
        "search": {
            "name": search.name,
            "state": str(search.state),
            "started": iso(search.started),
            "deadline": iso(search.deadline),
            "ended": iso(search.ended),
            "reason": search.reason,
        },
        "candidates": _plain(counts),
        "baselines": _plain(candidate_counts(session, search.id, role="baseline")),
        "jobs": _plain(jobs),
        "epochs": epochs,
        "forecasts": foreseen.against_fact(search, sum(counts.values()), epochs),
        "best": _best(session, search),
        "teacher": teacher_of(session, search),
        "drift": told(session, search.id),
        "executions": executions.words(search),
        "screen": screen_of(session, search),
        "queue": waiting.place_of(session, search.name),
    }


def screen_of(session: Reader | Session, search: SearchRow) -> dict[str, Any] | None:
    """What was left out because it was predicted to break a limit; None where nothing could be predicted yet."""
    record = search.data.get(screened.RECORD)
    numbers = [int(number) for number in (record or {}).get("checked", {})]
    measured = {number: candidate(session, search.id, number).measured for number in numbers}
    return screened.summary(record, measured)


def _best(session: Reader | Session, search: SearchRow) -> dict[str, Any] | None:
    view = front_view(session, search)
    first, names = view.objectives[0], [quantity.name for quantity in view.objectives]
    if not view.front:
        return None
    sign = 1 if first.maximise else -1
    best = max(view.front, key=lambda point: (sign * point.values[first.name], -point.row.number))
    return {
        "candidate": best.row.number,
        "values": {name: best.values[name] for name in names},
        "intervals": {name: list(interval) for name, interval in best.intervals.items()},
    }


def _plain(counts: dict[Any, int]) -> dict[str, int]:
    return {str(state): num for state, num in counts.items()}
