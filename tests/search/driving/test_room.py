"""A driver on a disk that fills up."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search import export, inline, room
from search.clock import Clock
from search.driver import Idle
from search.errors import UserError
from search.front import Standing, front_view
from search.holding import held
from search.states import REMOVED, CandidateState, SearchState
from search.status import status
from search.store.models import Artifact, Candidate, Event, Search
from search.store.read.searches import search_by_name
from workers.job import CheckpointRef, Job, Kind, Outcome

Make = Callable[..., Any]
SIZE = 1000


class Disk:
    """Holds `free` bytes beside what the files of `folder` take. Its clock moves by a minute whenever it is read."""

    def __init__(self, free: float) -> None:
        self.free = free
        self.now = 0.0
        self.used = lambda: 0

    def left(self, folder: Path) -> int:
        taken = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
        return int(self.free - taken)

    def tick(self) -> float:
        self.now += 60.0
        return self.now


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk(1e12)
    monkeypatch.setattr(room, "free_bytes", made.left)
    return made


def writes(bench: Any, answer: Any) -> Callable[[Job], Outcome]:
    """Jobs whose checkpoints are there. Every second candidate is dominated."""

    def perform(job: Job) -> Outcome:
        outcome = answer(job, bench.digest)
        if outcome.checkpoint is None:
            return outcome
        if job.candidate % 2 == 0:
            worse = dataclasses.replace(outcome.evaluation, accuracy=outcome.evaluation.accuracy / 10)
            outcome = dataclasses.replace(outcome, evaluation=worse)
        name = f"checkpoints/{job.candidate}/{job.id}-{job.attempt}-epoch{outcome.epoch}.safetensors"
        path = bench.artifacts / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(SIZE))
        return dataclasses.replace(outcome, checkpoint=CheckpointRef(name, outcome.epoch, "0" * 64, SIZE))

    return perform


def on(disk: Disk) -> dict[str, Any]:
    return {"clock": Clock(monotonic=disk.tick)}


def view_of(bench: Any) -> Any:
    return bench.store.write(lambda s: front_view(s, search_by_name(s, bench.config.name)))


def kept(bench: Any) -> set[int]:
    """Numbers of the candidates whose checkpoint of their last epoch is there."""
    numbers = {row.id: row.number for row in bench.rows(Candidate)}
    rows = [row for row in bench.rows(Artifact) if row.kind != REMOVED]
    assert all((bench.artifacts / row.path).exists() for row in rows)
    return {numbers[row.candidate_id] for row in rows}


@pytest.fixture
def ended(make_bench: Make, answer: Any, disk: Disk) -> Any:
    """A search that has ended, with room for all."""
    bench = make_bench(max_candidates=6, rungs="none")
    bench.run(bench.driver(on(disk)), writes(bench, answer))
    return bench


def test_a_search_waits_for_room_says_so_and_goes_on_by_itself(
    make_bench: Make, answer: Any, disk: Disk
) -> None:
    bench = make_bench(max_candidates=2, baselines={})
    driver = bench.driver(on(disk))
    job = driver.next_job()
    disk.free = 0.4e9
    assert driver.next_job() is Idle.WAIT
    driver.finish(answer(job, bench.digest))
    assert driver.next_job() is Idle.WAIT, "also when nothing runs any more"
    found = bench.store.write(lambda s: status(s, bench.config.name))["search"]
    assert found["state"] == "running"
    assert found["reason"].startswith("waits for room: 0.4 GB are free at ")
    disk.free = 2e9
    bench.run(driver)
    (search,) = bench.rows(Search)
    assert (search.state, search.reason) == (SearchState.FINISHED, None)
    assert [row.text.split(":")[0] for row in bench.rows(Event) if row.kind == "disk"] == [
        "waits for room",
        "there is room again",
    ]


def test_a_search_with_nothing_left_to_do_ends_also_without_room(make_bench: Make, disk: Disk) -> None:
    bench = make_bench(max_candidates=1, baselines={}, rungs="none", cost={"drift_minutes": 0})
    driver = bench.driver(on(disk))
    assert bench.run(driver, most=2) == 2
    disk.free = 0
    assert driver.next_job() is Idle.FINISHED
    assert bench.rows(Search)[0].state == SearchState.FINISHED


def test_the_inline_engine_waits_too(
    make_bench: Make, answer: Any, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(max_candidates=1, baselines={})
    monkeypatch.setattr(inline, "perform", lambda job, _: answer(job, bench.digest))
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        disk.free = 2e9

    monkeypatch.setattr(inline.time, "sleep", sleep)
    disk.free = 0
    inline.run(bench.driver(on(disk)))
    assert len(waited) == 1
    assert bench.rows(Search)[0].state == SearchState.FINISHED


def test_without_room_dominated_checkpoints_go_and_the_fronts_and_the_baselines_stay(
    ended: Any, disk: Disk, answer: Any
) -> None:
    points = {point.row.number: point.standing for point in view_of(ended).candidates}
    dominated = [number for number, standing in points.items() if standing == Standing.DOMINATED]
    assert dominated, "the search is too small to tell"
    disk.free = 0
    ended.driver(on(disk)).next_job()
    gone = set(points) - kept(ended)
    assert gone == set(dominated)
    assert {number for number, standing in points.items() if standing == Standing.FRONT} <= kept(ended)
    assert -1 in kept(ended)
    told = Counter(row.candidate for row in ended.rows(Event) if row.kind == "thinned")
    assert told == Counter(gone)
    with ended.store.read() as reader:
        search = search_by_name(reader, ended.config.name)
        with pytest.raises(UserError, match="was removed to make room on the disk"):
            export.prepare(reader, search, str(dominated[0]))


def test_a_checkpoint_that_is_being_exported_stays(ended: Any, disk: Disk) -> None:
    points = view_of(ended).candidates
    number = next(point.row.number for point in points if point.standing == Standing.DOMINATED)
    (path,) = (ended.artifacts / "checkpoints" / str(number)).iterdir()
    disk.free = 0
    with held(path):
        ended.driver(on(disk)).next_job()
    assert number in kept(ended)


def test_a_kill_between_the_rows_and_the_files_leaves_no_file_behind(
    ended: Any, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.free = 0

    def killed(path: Path, *, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        driver = ended.driver(on(disk))
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            driver.next_job()
    removed = [row.path for row in ended.rows(Artifact) if row.kind == REMOVED]
    assert removed
    assert all((ended.artifacts / path).exists() for path in removed)
    ended.driver(on(disk))
    assert not any((ended.artifacts / path).exists() for path in removed)


def test_what_was_stopped_and_has_no_checkpoint_any_more_trains_from_its_first_epoch_when_it_is_taken_up(
    make_bench: Make, disk: Disk, answer: Any
) -> None:
    bench = make_bench(max_candidates=8, rungs=[1, 3, 9], baselines={})
    work = writes(bench, answer)
    driver = bench.driver(on(disk))
    bench.run(driver, work, most=14)
    driver.schedule.deadline = 1.0
    bench.run(driver, work)
    disk.free = 0
    bench.driver(on(disk)).next_job()
    stopped = {row.number for row in bench.rows(Candidate) if row.state == CandidateState.STOPPED}
    trained = {row.number for row in bench.rows(Candidate) if row.epoch} & stopped
    assert trained
    assert not kept(bench) & stopped
    disk.free = 1e12
    bench.store.write(lambda s: setattr(s.get_one(Search, bench.search_id), "state", SearchState.QUEUED))
    began: dict[int, int] = {}

    def perform(job: Job) -> Outcome:
        if job.kind == Kind.TRAIN and job.candidate in trained:
            began.setdefault(job.candidate, job.first_epoch)
            assert job.checkpoint is None or job.first_epoch == job.checkpoint.epoch + 1
        return work(job)

    bench.run(bench.driver(on(disk)), perform)
    assert began
    assert set(began.values()) == {1}


def test_a_budget_of_checkpoints_is_kept_by_removing_those_that_may_go(
    make_bench: Make, answer: Any, disk: Disk
) -> None:
    bench = make_bench(max_candidates=9, baselines={}, rungs="none")
    most = 7 * SIZE / 1e9
    driver = bench.driver(on(disk))
    driver.schedule.limits = dataclasses.replace(driver.schedule.limits, disk_gb=most)
    bench.run(driver, writes(bench, answer))
    (search,) = bench.rows(Search)
    assert [row.state for row in bench.rows(Candidate)] == [CandidateState.FINISHED] * 9
    assert search.state == SearchState.FINISHED
    assert driver.schedule.spending.disk_gb <= most
