"""What a front shows, and what it refuses to compare."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from search.front import FrontView, Standing, front_view
from search.status import status
from search.store.models import Candidate, MeasurementRow, Search
from search.store.read.searches import search_by_name
from search.store.session import Store

T = TypeVar("T")
HEAVY = ("torch", "ray", "optuna", "sqlalchemy", "alembic", "moocore", "numpy", "pydantic")


class RolledBack(Exception):
    """Ends a write whose changes were only for looking at."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, fill_at: Any) -> Iterator[Store]:
    """A finished search of 22 candidates; no test changes it."""
    filled = fill_at(tmp_path_factory.mktemp("front") / "a.db")
    yield filled.store
    filled.store.close()


def view_of(store: Store, change: Callable[[Any], object] = lambda _: None) -> FrontView:
    """The front after a change that is then rolled back."""
    return seen_after(store, change, lambda s: front_view(s, search_by_name(s, "digits")))


def seen_after(store: Store, change: Callable[[Any], object], look: Callable[[Any], T]) -> T:
    seen: list[T] = []

    def work(session: Any) -> None:
        change(session)
        session.flush()
        seen.append(look(session))
        raise RolledBack

    with pytest.raises(RolledBack):
        store.write(work)
    return seen[-1]


def of(session: Any, number: int) -> Any:
    return session.query(Candidate).filter_by(number=number).one()


def measurement(session: Any, number: int) -> Any:
    return session.query(MeasurementRow).filter_by(candidate_id=of(session, number).id).one()


def copy_of(row: Any, **changes: Any) -> MeasurementRow:
    columns = {column.name: getattr(row, column.name) for column in MeasurementRow.__table__.columns}
    return MeasurementRow(**columns | {"id": None} | changes)


def cheapest(view: FrontView) -> int:
    return view.front[0].row.number


def test_the_front_is_what_no_finished_candidate_dominates(store: Store) -> None:
    view = view_of(store)
    finished = [point for point in view.candidates if point.row.state == "finished"]
    limit = view.limits[0]
    inside = [point.values for point in finished if limit.surely_allows(point.intervals["latency_ms"][1])]
    expected = [
        one
        for one in inside
        if not any(
            other["accuracy"] >= one["accuracy"] and other["latency_ms"] <= one["latency_ms"] and other != one
            for other in inside
        )
    ]
    assert [p.values for p in view.front] == sorted(expected, key=lambda values: values["latency_ms"])
    assert len(view.front) > 1


def test_every_candidate_has_one_standing(store: Store) -> None:
    view = view_of(store)
    by_state: dict[str, set[str]] = {}
    for point in view.candidates:
        by_state.setdefault(point.row.state, set()).add(point.standing)
    finished = {Standing.FRONT, Standing.DOMINATED, Standing.OUTSIDE, Standing.BORDERLINE}
    assert by_state.pop("finished") <= finished
    assert by_state == {
        "stopped": {"stopped"},
        "rejected": {"rejected"},
        "failed": {"failed"},
        "waiting": {"unfinished"},
        "training": {"unfinished"},
        "measured": {"unfinished"},
        "proposed": {"unfinished"},
    }
    assert [point.standing for point in view.baselines] == [Standing.BASELINE]


@pytest.mark.parametrize(
    "changes",
    [
        {"device_id": "cuda:another"},
        {"threads": 4},
        {"batch_size": 8},
        {"runtime": "onnx"},
        {"precision": "bf16"},
        {"protocol": "eager-2"},
    ],
)
def test_figures_of_other_conditions_are_not_compared(store: Store, changes: dict[str, Any]) -> None:
    number = cheapest(view_of(store))

    def work(session: Any) -> None:
        row = measurement(session, number)
        for name, value in changes.items():
            setattr(row, name, value)

    point = view_of(store, work).candidates[number - 1]
    assert point.standing == Standing.INCOMPARABLE
    assert "latency_ms" not in point.values
    assert "accuracy" in point.values


def test_a_cost_that_is_computed_needs_no_measurement(store: Store) -> None:
    def work(session: Any) -> None:
        row = session.get(Search, 1)
        row.config = dict(row.config) | {"objectives": ["accuracy", "params"], "constraints": {}}
        session.query(MeasurementRow).delete()

    view = view_of(store, work)
    assert view.conditions is None
    assert view.front
    assert all("latency_ms" not in point.values for point in view.candidates)
    assert "latency_ms" not in view.measured_how


def test_of_two_measurements_the_newest_clean_one_counts(store: Store) -> None:
    number = cheapest(view_of(store))

    def again(session: Any) -> None:
        row = measurement(session, number)
        session.add(copy_of(row, figures=row.figures | {"latency_ms": 0.01, "flags": []}))
        session.flush()
        session.add(copy_of(row, figures=row.figures | {"latency_ms": 9.0, "flags": ["contended"]}))

    assert view_of(store, again).candidates[number - 1].values["latency_ms"] == 0.01


def test_a_finished_candidate_that_breaks_a_constraint_is_outside(store: Store) -> None:
    best = max(
        point.values["accuracy"] for point in view_of(store).candidates if point.row.state == "finished"
    )

    def work(session: Any) -> None:
        row = session.get(Search, 1)
        row.config = dict(row.config) | {"constraints": {"accuracy": best, "latency_ms": "9x resnet"}}

    view = view_of(store, work)
    assert [point.values["accuracy"] for point in view.front] == [best]
    assert sum(point.standing == Standing.OUTSIDE for point in view.candidates) == 8


def test_a_finished_candidate_whose_cost_straddles_a_limit_is_borderline_and_on_no_front(
    store: Store,
) -> None:
    fastest = min(view_of(store).front, key=lambda point: point.values["latency_ms"])
    low, high = fastest.intervals["latency_ms"]

    def limit(value: float) -> Any:
        def work(session: Any) -> None:
            row = session.get(Search, 1)
            row.config = dict(row.config) | {"constraints": {"latency_ms": value}}

        return work

    for value, standing in ((high, "front"), ((low + high) / 2, "borderline"), (low * 0.999, "outside")):
        point = view_of(store, limit(value)).candidates[fastest.row.number - 1]
        assert point.standing == standing


def test_the_best_that_status_shows_keeps_the_limits(store: Store) -> None:
    first = min(view_of(store).front, key=lambda point: point.values["latency_ms"])
    fastest = first.values["latency_ms"]

    def limit(session: Any) -> None:
        row = session.get(Search, 1)
        row.config = dict(row.config) | {"constraints": {"latency_ms": first.intervals["latency_ms"][1]}}

    free = seen_after(store, lambda _: None, lambda s: status(s, "digits")["best"])
    kept = seen_after(store, limit, lambda s: status(s, "digits")["best"])
    assert kept["values"]["latency_ms"] == fastest
    assert free["values"]["latency_ms"] > fastest


def test_a_relative_constraint_waits_for_its_baseline(store: Store) -> None:
    view = view_of(store, lambda session: session.delete(measurement(session, -1)))
    assert view.limits == ()
    assert view.front


def test_a_search_without_candidates_has_an_empty_front(store: Store) -> None:
    view = view_of(store, lambda session: session.query(Candidate).delete())
    assert (view.front, view.candidates, view.baselines) == ((), (), ())
    json.dumps(view.to_dict(all=True), allow_nan=False)


def test_each_quantity_says_how_it_was_taken(store: Store) -> None:
    how = view_of(store).measured_how
    assert "270 validation images" in how["accuracy"]
    assert "12 epochs" in how["accuracy"]
    assert "test split took no part" in how["accuracy"]
    for words in ("Example CPU", "1 thread,", "torch fp32", "batch 1", "eager-1", "calls a model", "1 of"):
        assert words in how["latency_ms"]
    assert "not measured" in how["params"]


def test_only_what_is_timed_claims_the_device_for_itself(store: Store) -> None:
    """The protocol takes peak memory after the lock is given back."""
    how = view_of(store).measured_how
    alone = {name for name, sentence in how.items() if "no training beside it" in sentence}
    assert alone == {"latency_ms", "latency_ms_p95", "throughput"}


def test_the_json_is_as_documented(store: Store) -> None:
    view = view_of(store)
    shown = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert shown["search"] == "digits"
    assert shown["device"] == {"id": "cpu:0123", "name": "Example CPU", "threads": 1}
    assert shown["objectives"] == ["accuracy", "latency_ms"]
    assert "candidates" not in shown
    first = shown["front"][0]
    assert {"candidate", "family", "spec", "digest", "values", "intervals", "state", "rung"} <= set(first)
    assert set(first["spec"]) == {"model", "args", "image_size"}
    assert first["intervals"]["accuracy"][0] < first["values"]["accuracy"] < first["intervals"]["accuracy"][1]
    assert shown["baselines"][0]["name"] == "resnet"
    assert len(view.to_dict(all=True)["candidates"]) == 22


def test_status_and_front_read_without_anything_heavy_in_half_a_second(store: Store) -> None:
    code = f"""
import json, sys
from search.front import front_view
from search.store.read.searches import search_by_name
from search.status import status
from search.store.session import open_store
store = open_store({str(store.location.path)!r}, create=False)
with store.read() as reader:
    json.dumps(front_view(reader, search_by_name(reader, "digits")).to_dict(all=True))
    json.dumps(status(reader, "digits"))
print([name for name in {HEAVY} if name in sys.modules])
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run.stdout.strip() == "[]"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5
