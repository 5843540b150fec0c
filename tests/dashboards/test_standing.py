from __future__ import annotations

from typing import Any

import pytest

from dashboards.standing import beats, verdict
from search.front import FrontView, front_view
from search.store.read.searches import search_by_name

FULL = 12


@pytest.fixture
def view(filled: Any) -> FrontView:
    with filled.store.read() as reader:
        return front_view(reader, search_by_name(reader, filled.name))


def of(view: FrontView, standing: str) -> list[Any]:
    return [point for point in (*view.candidates, *view.baselines) if str(point.standing) == standing]


def test_a_dominated_candidate_names_exactly_those_of_the_front_that_beat_it(view: FrontView) -> None:
    for point in of(view, "dominated"):
        ((what, others),) = verdict(view, point, FULL).others
        assert what == "Beaten by"
        better = {
            other.row.number
            for other in view.front
            if other.values["accuracy"] >= point.values["accuracy"]
            and other.values["latency_ms"] <= point.values["latency_ms"]
        }
        assert {other.row.number for other in others} == better


def test_nothing_of_the_front_is_beaten(view: FrontView) -> None:
    for point in of(view, "front"):
        assert not any(beats(other, point, view.objectives) for other in view.front)
        assert "beaten by no other" in verdict(view, point, FULL).words


def test_a_point_of_the_front_leads_to_its_neighbours_by_cost(view: FrontView) -> None:
    first, second, *_, last = view.front
    assert [(what, [p.row.number for p in points]) for what, points in verdict(view, first, FULL).others] == [
        ("Next with more latency, median", [second.row.number])
    ]
    less, more = verdict(view, second, FULL).others
    assert (less[0], less[1][0].row.number) == ("Next with less latency, median", first.row.number)
    assert more[0] == "Next with more latency, median"
    assert [what for what, _ in verdict(view, last, FULL).others] == ["Next with less latency, median"]


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        ("rejected", "Measured, breaks a limit, never trained."),
        ("stopped", "Its training ended early, after 4 of 12 epochs."),
        ("unfinished", "Not at its last epoch yet"),
        ("failed", "Ended by an error of its own."),
        ("baseline", "A known model, measured and trained the same way"),
    ],
)
def test_every_standing_is_told_in_a_sentence(view: FrontView, standing: str, told: str) -> None:
    assert verdict(view, of(view, standing)[0], FULL).words.startswith(told)


def test_a_candidate_outside_a_limit_names_the_limit(view: FrontView) -> None:
    for point in of(view, "outside"):
        assert "is above the limit" in verdict(view, point, FULL).words


def test_one_without_a_figure_beats_nobody(view: FrontView) -> None:
    rejected, on_front = of(view, "rejected")[0], view.front[0]
    assert not beats(rejected, on_front, view.objectives)
    assert not beats(on_front, rejected, view.objectives)
