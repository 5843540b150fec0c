from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dashboards import front_told
from search.cli import look_text
from search.front import FrontPoint, FrontView, Standing, front_view
from search.objectives import Limit
from search.states import SearchState
from search.store.read.searches import search_by_name

LIMIT = Limit("latency_ms", 0.5, upper=True)


@pytest.fixture
def view(filled: Any) -> FrontView:
    with filled.store.read() as reader:
        return front_view(reader, search_by_name(reader, filled.name))


def standing(view: FrontView, *standings: Standing) -> FrontView:
    """The first candidates of the view, each with the given standing; the rest and the baselines are taken away."""
    points = [replace(p, standing=s) for p, s in zip(view.candidates, standings, strict=False)]
    front = tuple(point for point in points if point.standing == Standing.FRONT)
    return replace(view, candidates=tuple(points), front=front, baselines=(), limits=(LIMIT,))


def with_figures(point: FrontPoint, accuracy: float) -> FrontPoint:
    values = {"accuracy": accuracy, "latency_ms": 0.51}
    return replace(point, values=values, intervals={"latency_ms": (0.48, 0.53)})


def test_a_search_that_ended_says_what_became_of_its_candidates_instead_of_not_yet(view: FrontView) -> None:
    ended = standing(view, Standing.REJECTED, Standing.REJECTED, Standing.OUTSIDE)
    assert front_told.why_empty(ended) == (
        "No candidate was trained in full within the limits, so there is no front. "
        "Of 3: 1 trained in full but outside a limit, 2 rejected."
    )
    going_on = replace(ended, search=replace(ended.search, state=SearchState.RUNNING))
    assert "yet" in front_told.why_empty(going_on)
    assert front_told.why_empty(view) == ""


def test_every_standing_of_a_candidate_has_words_but_for_those_of_the_front(view: FrontView) -> None:
    others = [s for s in Standing if s not in (Standing.FRONT, Standing.DOMINATED, Standing.BASELINE)]
    told = front_told.why_empty(standing(view, *others))
    assert told.count("1 ") == len(others)


def test_a_better_model_that_is_only_borderline_is_named_beside_the_front(view: FrontView) -> None:
    found = standing(view, Standing.FRONT, Standing.BORDERLINE)
    on_front, doubtful = found.candidates
    found = replace(found, candidates=(on_front, with_figures(doubtful, 0.999)))
    told = front_told.borderline(found)
    assert told == (
        "1 candidate is borderline, trained in full but on no front: #2, accuracy 0.999, better than all that are; "
        "its latency_ms 0.48 to 0.53 contains the limit 0.5."
    )
    assert told in " ".join(look_text.front(found, everything=False).split())
    worse = replace(found, candidates=(on_front, with_figures(doubtful, 0.001)))
    assert "better" not in front_told.borderline(worse)
    assert front_told.borderline(standing(view, Standing.FRONT)) == ""


def test_an_empty_front_prints_no_heading_of_a_table_without_rows(view: FrontView) -> None:
    text = look_text.front(standing(view, Standing.REJECTED), everything=False)
    assert "architecture" not in text
    assert "How it was measured" not in text


def test_a_note_on_accuracies_says_that_some_trainings_were_shorter(view: FrontView) -> None:
    assert "after 12 epochs of training (seed 0), or after fewer" in view.measured_how["accuracy"]
