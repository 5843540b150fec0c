"""The functions of `search.store.read`, on each kind of database."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from search import gate, lease
from search.errors import UserError
from search.front import front_view
from search.states import CandidateState, JobState, SearchState
from search.status import status, status_of
from search.store.models import Attempt, Candidate, JobRow, Search
from search.store.read.candidates import baseline, candidate, candidates
from search.store.read.events import events, last_events
from search.store.read.jobs import attempts, busy_seconds, jobs
from search.store.read.results import (
    artifacts,
    curves,
    epochs,
    evaluations,
    measurements,
    measurements_of_search,
    num_epochs,
)
from search.store.read.searches import search_by_name, searches
from search.store.reader import Reader
from search.store.session import Store
from search.store.write import jobs as write_jobs
from workers.job import EpochReport, Kind

T = TypeVar("T")


class RolledBack(Exception):
    """Ends a write whose changes were only for looking at."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, fill_at: Any
) -> Iterator[Store]:
    """22 candidates over all states and the baseline `resnet`, in search `digits`; no test changes it."""
    if request.param == "sqlite":
        filled = fill_at(tmp_path_factory.mktemp("reading") / "a.db")
    else:
        postgres = request.getfixturevalue("postgres")
        postgres.execute("CREATE DATABASE reading")
        filled = fill_at(postgres.url("reading"))
    yield filled.store
    filled.store.close()


@pytest.fixture
def reader(filled_store: Store) -> Iterator[Reader]:
    with filled_store.read() as opened:
        yield opened


@pytest.fixture
def search(reader: Reader) -> int:
    return search_by_name(reader, "digits").id


def after(store: Store, change: Callable[[Any], object], look: Callable[[Any], T]) -> T:
    """What `look` reads after a change that is then rolled back."""
    seen: list[T] = []

    def work(session: Any) -> None:
        change(session)
        session.flush()
        seen.append(look(session))
        raise RolledBack

    with pytest.raises(RolledBack):
        store.write(work)
    return seen[-1]


class TestSearches:
    def test_a_search_is_found_by_its_name_with_its_config(self, reader: Reader) -> None:
        row = search_by_name(reader, "digits")
        assert row.config["training"]["epochs"] == 12
        assert row.data["num_images"] == {"train": 1258, "val": 270, "test": 269}
        assert (row.state, row.stored_state) == (SearchState.FINISHED, SearchState.FINISHED)

    def test_an_unknown_name_gets_the_nearest_one(self, reader: Reader) -> None:
        with pytest.raises(UserError, match="did you mean 'digits'"):
            search_by_name(reader, "digit")
        with pytest.raises(UserError, match="there are: digits"):
            search_by_name(reader, "zzz")

    def test_an_empty_database_says_how_to_start(self, store: Store) -> None:
        with (
            store.read() as empty,
            pytest.raises(UserError, match="holds none yet; start one: paretovit run"),
        ):
            search_by_name(empty, "digits")

    def test_all_searches_come_newest_first_and_in_pages(self, filled_store: Store) -> None:
        def more(session: Any) -> None:
            for name in ("b", "c"):
                session.add(Search(name=name, state="queued", config={}, created=1.0, data={}, artifacts="x"))
                session.flush()

        def look(session: Any) -> list[list[str]]:
            pages = (searches(session), searches(session, limit=1, offset=1))
            return [[row.name for row in page] for page in pages]

        assert after(filled_store, more, look) == [["c", "b", "digits"], ["b"]]

    @pytest.mark.parametrize("stored", ["running", "draining"])
    def test_a_search_whose_driver_is_gone_is_interrupted(self, filled_store: Store, stored: str) -> None:
        def driven_by(pid: int) -> SearchState:
            me = lease.this_process()

            def work(session: Any) -> None:
                row = session.get(Search, 1)
                row.state, row.owner_host, row.owner_boot = stored, me.host, me.boot
                row.owner_pid, row.owner_started, row.beat_time = pid, me.started, time.time()

            row = after(filled_store, work, lambda session: search_by_name(session, "digits"))
            assert row.stored_state == stored
            return row.state

        assert driven_by(os.getpid()) == stored
        assert driven_by(2**22 + 1) == SearchState.INTERRUPTED


class TestCandidates:
    def test_candidates_come_by_number_and_baselines_apart(self, reader: Reader, search: int) -> None:
        assert [row.number for row in candidates(reader, search)] == list(range(1, 23))
        assert [row.number for row in candidates(reader, search, role=None)] == [-1, *range(1, 23)]
        (resnet,) = candidates(reader, search, "baseline")
        assert (resnet.name, resnet.is_baseline) == ("resnet", True)
        assert baseline(reader, search, "resnet") == resnet

    def test_pages_hold_each_candidate_once(self, reader: Reader, search: int) -> None:
        found: list[int] = []
        while page := candidates(reader, search, after=found[-1] if found else 0, limit=5):
            found += [row.number for row in page]
        assert found == list(range(1, 23))

    def test_states_select(self, reader: Reader, search: int) -> None:
        wanted = {CandidateState.REJECTED, CandidateState.FAILED}
        rows = candidates(reader, search, states=wanted)
        assert {row.state for row in rows} == wanted
        assert len(rows) == 5
        assert candidates(reader, search, states=[]) == []

    def test_columns_are_read_as_what_they_mean(self, reader: Reader, search: int) -> None:
        row = candidate(reader, search, 1)
        assert row.spec.digest == row.digest
        assert row.spec.args["num_classes"] == 10
        assert set(row.by_rung) == {0, 1}
        assert isinstance(row.intervals["accuracy"], tuple)
        assert row.told is False
        assert row.point["family"] == row.family

    def test_an_unknown_number_or_name_is_answered_with_those_there_are(
        self, reader: Reader, search: int
    ) -> None:
        with pytest.raises(UserError, match="no candidate 99: there are 1 to 22"):
            candidate(reader, search, 99)
        with pytest.raises(UserError, match="no baseline 'vgg'; there are: resnet"):
            baseline(reader, search, "vgg")


class TestJobs:
    def test_jobs_name_their_candidate_and_come_in_pages(self, reader: Reader, search: int) -> None:
        rows = jobs(reader, search)
        assert [row.id for row in rows] == sorted(row.id for row in rows)
        assert {row.candidate for row in rows} >= {-1, 1, 22 - 1}
        assert all(row.num_attempts == 1 for row in rows)
        assert jobs(reader, search, after=rows[2].id, limit=2) == rows[3:5]
        assert jobs(reader, search, JobState.PENDING) == []
        assert jobs(reader, search, JobState.DONE) == rows

    def test_attempts_say_what_ran_where(self, reader: Reader, search: int) -> None:
        rows = attempts(reader, candidate(reader, search, 1).id)
        assert [row.kind for row in rows] == ["measure", "train", "train"]
        assert {(row.host, row.pid, row.seconds) for row in rows} == {("host", 4242, 1.5)}
        assert busy_seconds(reader, search) == pytest.approx(1.5 * len(jobs(reader, search)))


class TestResults:
    def test_a_candidates_epochs_are_whole_and_in_order(self, reader: Reader, search: int) -> None:
        rows = epochs(reader, candidate(reader, search, 1).id)
        assert [row.epoch for row in rows] == list(range(1, 13))
        assert all(row.accuracy_low < row.accuracy < row.accuracy_high for row in rows)

    def test_curves_hold_the_epochs_of_every_trained_candidate(self, reader: Reader, search: int) -> None:
        found = curves(reader, search)
        rows = candidates(reader, search, role=None)
        assert found == {row.id: epochs(reader, row.id) for row in rows if epochs(reader, row.id)}
        assert num_epochs(reader, search) == sum(map(len, found.values()))

    def test_a_lost_attempts_epochs_do_not_count_and_a_running_ones_give_way(
        self, filled_store: Store
    ) -> None:
        def report(attempt: Attempt, epoch: int, accuracy: float) -> EpochReport:
            return EpochReport(
                attempt.job_id, attempt.number, 1, epoch, 1.0, 1.0, accuracy, 0.0, 1.0, 1e-3, 0.1
            )

        def work(session: Any) -> None:
            row = session.query(Candidate).filter_by(number=22).one()
            job = write_jobs.add(session, row, Kind.TRAIN, rung=0, epochs=(1, 3))
            for state, upto, accuracy in (("lost", 3, 0.1), ("done", 2, 0.2), ("running", 3, 0.3)):
                job.state = JobState.PENDING
                attempt = write_jobs.open_attempt(session, job, 1)
                for epoch in range(1, upto + 1):
                    write_jobs.add_epoch(session, row.id, attempt, report(attempt, epoch, accuracy))
                attempt.state = state
            return row.id

        number = filled_store.write(work)
        with filled_store.read() as reader:
            assert [(row.epoch, row.accuracy) for row in epochs(reader, number)] == [
                (1, 0.2),
                (2, 0.2),
                (3, 0.3),
            ]

    def test_measurements_and_evaluations_carry_all_figures(self, reader: Reader, search: int) -> None:
        row = candidate(reader, search, 1)
        (measurement,) = measurements(reader, row.id)
        assert measurement.figures["latency_ms"] == row.measured["latency_ms"]
        assert measurement.is_cached is False
        assert [evaluation.epoch for evaluation in evaluations(reader, row.id)] == [12, 4]
        assert evaluations(reader, row.id)[0].figures["accuracy"] == row.measured["accuracy"]
        assert len(measurements_of_search(reader, search)) == 22
        assert measurements_of_search(reader, search, "cuda:1") == []

    def test_artifacts_are_listed_by_search_and_candidate(self, reader: Reader, search: int) -> None:
        row = candidate(reader, search, 1)
        assert [artifact.epoch for artifact in artifacts(reader, search, row.id)] == [4, 12]
        assert len(artifacts(reader, search)) > 2

    def test_events_come_in_order_and_in_pages(self, reader: Reader, search: int) -> None:
        rows = events(reader, search)
        assert rows[-1].kind == "end"
        assert events(reader, search, after=rows[1].id, limit=2) == rows[2:4]
        assert last_events(reader, search, 3) == rows[-3:]


class TestStatus:
    def test_counts_hold_every_state_and_add_up(self, reader: Reader) -> None:
        found = status(reader, "digits")
        assert set(found["candidates"]) == {str(state) for state in CandidateState}
        assert set(found["jobs"]) == {str(state) for state in JobState}
        assert sum(found["candidates"].values()) == 22
        assert found["candidates"]["finished"] == 9
        assert found["baselines"]["finished"] == 1
        assert found["search"]["name"] == "digits"
        assert found["search"]["deadline"] is None
        assert found["search"]["started"].endswith("+00:00")

    def test_the_best_is_within_limits_and_best_in_the_first_objective(
        self, reader: Reader, search: int
    ) -> None:
        best = status(reader, "digits")["best"]
        limits = front_view(reader, search_by_name(reader, "digits")).limits
        finished = [
            row.measured
            for row in candidates(reader, search, states=[CandidateState.FINISHED])
            if gate.rejection(limits, row.measured, row.intervals) is None
            and gate.doubt(limits, row.measured, row.intervals) is None
        ]
        expected = max(finished, key=lambda measured: measured["accuracy"])
        assert best["values"] == {name: expected[name] for name in ("accuracy", "latency_ms")}

    def test_nothing_is_best_before_something_is_finished(self, filled_store: Store) -> None:
        def work(session: Any) -> None:
            for row in session.query(Candidate):
                row.state = "waiting"

        assert after(filled_store, work, lambda session: status(session, "digits")["best"]) is None

    def test_what_ran_in_an_interrupted_search_is_not_said_to_run(self, filled_store: Store) -> None:
        def work(session: Any) -> None:
            session.get(Search, 1).state = "running"
            session.query(JobRow).filter_by(state="pending").delete()
            session.query(JobRow).filter_by(state="running").update({"state": "done"})
            session.query(JobRow).first().state = "running"

        found = after(filled_store, work, lambda session: status(session, "digits"))
        assert found["search"]["state"] == "interrupted"
        assert (found["jobs"]["running"], found["jobs"]["pending"]) == (0, 1)


def test_inside_a_write_the_same_is_read(filled_store: Store) -> None:
    def everything(session: Any) -> list[Any]:
        search = search_by_name(session, "digits")
        one = candidate(session, search.id, 1)
        return [
            search,
            candidates(session, search.id, role=None),
            jobs(session, search.id),
            attempts(session, one.id),
            curves(session, search.id),
            measurements(session, one.id),
            evaluations(session, one.id),
            artifacts(session, search.id),
            events(session, search.id),
            status_of(session, search),
        ]

    with filled_store.read() as reader:
        assert filled_store.write(everything) == everything(reader)


def test_a_write_sees_its_own_unflushed_changes(filled_store: Store) -> None:
    def work(session: Any) -> None:
        session.get(Search, 1).reason = "just now"
        assert search_by_name(session, "digits").reason == "just now"
        raise RolledBack

    with pytest.raises(RolledBack):
        filled_store.write(work)


def test_rows_cannot_be_changed(reader: Reader) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        search_by_name(reader, "digits").name = "other"  # pyright: ignore[reportAttributeAccessIssue]
