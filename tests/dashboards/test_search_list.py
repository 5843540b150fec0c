from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dashboards.search_list import Entry, best, entry
from search.front import front_view
from search.store.read.searches import search_by_name


def listed(filled: Any) -> Entry:
    with filled.store.read() as reader:
        return entry(reader, search_by_name(reader, filled.name))


def figures(found: Entry) -> dict[str, tuple[str, str]]:
    return {figure.term: (figure.value, figure.more) for figure in found.figures}


def change(filled: Any, **columns: Any) -> None:
    from sqlalchemy import update

    from search.store.models import Search

    filled.store.write(lambda session: session.execute(update(Search).values(**columns)))


def test_the_best_is_the_most_accurate_of_the_front_with_its_cost(filled: Any) -> None:
    with filled.store.read() as reader:
        view = front_view(reader, search_by_name(reader, filled.name))
    most = max(view.front, key=lambda point: point.values["accuracy"])
    found = best(view.front, view.objectives)
    assert found is not None
    assert found.row.number == most.row.number
    value, more = figures(listed(filled))["Best accuracy"]
    assert value == f"{most.values['accuracy']:.3f}"
    assert more == f"#{most.row.number} at {most.values['latency_ms']:.3f} ms, latency, median"


def test_progress_counts_what_has_ended_and_tells_every_state(filled: Any) -> None:
    progress = listed(filled).progress
    assert (progress.ended, progress.most) == (18, 22)
    assert progress.text == (
        "1 proposed, 1 measured, 4 rejected, 1 training, 1 waiting, 4 stopped, 9 finished, 1 failed"
    )


def test_a_search_that_came_to_its_end_is_shown_at_its_end(filled: Any) -> None:
    """Also where a small space held fewer candidates than it might have tried."""
    found = listed(filled).progress
    assert (found.share, found.sentence) == (1.0, "18 candidates have ended; up to 22 were asked for.")
    change(filled, state="stopped")
    found = listed(filled).progress
    assert (found.share, found.sentence) == (18 / 22, "18 of 22 candidates have ended.")


def test_a_search_whose_driver_is_gone_is_interrupted_and_says_how_to_go_on(filled: Any) -> None:
    change(filled, state="running", ended=None)
    found = listed(filled)
    assert found.state == "interrupted"
    assert found.notice.endswith("Go on with: paretovit resume digits")
    filled.begin()
    found = listed(filled)
    assert (found.state, found.notice) == ("running", "")


def test_a_search_that_waits_has_no_best_yet(filled: Any) -> None:
    from sqlalchemy import delete

    from search.store.models import Candidate, MeasurementRow

    def begin(session: Any) -> None:
        session.execute(delete(MeasurementRow))
        session.execute(delete(Candidate))

    filled.store.write(begin)
    change(filled, state="queued", started=None, ended=None)
    found = figures(listed(filled))
    assert found["Best accuracy"] == ("–", "none within the limits yet")
    assert "Queued" in found


def test_why_a_search_failed_is_told(filled: Any) -> None:
    assert listed(filled).reason == ""
    change(filled, state="failed", reason="the baseline failed")
    assert listed(filled).reason == "the baseline failed"


def test_a_deadline_is_listed(filled: Any, fill_at: Callable[..., Any]) -> None:
    assert "Deadline" not in figures(listed(filled))
    change(filled, deadline=1_796_100_000.0)
    assert figures(listed(filled))["Deadline"] == ("2026-12-01 04:40:00 UTC", "")
