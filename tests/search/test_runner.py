"""A runner on a queue, its processes stood in for; on both kinds of database."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest

from search import lease, requests, run_process
from search.lease import Owner
from search.requests import Ask, Asked
from search.runner import Runner
from search.states import QueueState, SearchState
from search.store.models import Queue, Request, Search
from search.store.session import Store
from search.store.write import queue, searches
from search.store.write.queue import Withdrawn
from search.store.write.searches import NameTaken

ELSEWHERE = Owner("elsewhere", "boot", 7, 1.0)


@dataclass
class Process:
    """Stands in for the process of a search. code: as if it had ended so."""

    row: int
    claim: int
    code: int | None = None
    words: str = ""

    @property
    def process(self) -> Any:
        return self

    @property
    def pid(self) -> int:
        return 2**22 + 5

    def said(self) -> str:
        return self.words


@dataclass
class Started:
    processes: list[Process] = field(default_factory=list)

    def __call__(self, location: Any, root: Any, name: str, row: int, claim: int) -> Process:
        self.processes.append(Process(row, claim))
        return self.processes[-1]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    found = Started()
    monkeypatch.setattr(run_process, "start", found)
    return found


@pytest.fixture
def runner(store: Store, started: Started) -> Runner:
    return Runner(store, lambda _: None)


def submit(store: Store, name: str, priority: int = 5, window: str | None = None, modules: Any = ()) -> int:
    return store.write(lambda s: queue.add(s, name, {"name": name}, modules, priority, window))


def row(store: Store, name: str) -> Queue:
    return store.write(lambda s: s.query(Queue).filter_by(name=name).order_by(Queue.id.desc()).first())


def begin(store: Store, process: Process, name: str, *, driven: bool = True) -> int:
    """As if the process had begun its search and drove it, from this very process."""

    def work(session: Any) -> int:
        found = queue.claimed(session, process.row, process.claim)
        if found.search_id is None:
            found.search_id = searches.create(session, name, {}, {}, f"/tmp/{name}", None)
        search = session.get_one(Search, found.search_id)
        search.state = SearchState.RUNNING
        if driven:
            searches.take(session, search.id, lease.this_process())
        return search.id

    return store.write(work)


def leave(store: Store, search_id: int, state: SearchState, reason: str | None = None) -> None:
    """As if the driver had ended."""

    def work(session: Any) -> None:
        search = session.get_one(Search, search_id)
        search.state, search.reason = state, reason
        searches.release(session, search_id, search.lease)

    store.write(work)


def ask(store: Store, name: str, kind: Ask) -> str | None:
    return store.write(lambda s: requests.ask(s, name, Asked(kind)))


def test_searches_are_run_by_priority_one_at_a_time(runner: Runner, store: Store, started: Started) -> None:
    for name, priority in (("low", 2), ("high", 8), ("middle", 5)):
        submit(store, name, priority)
    names = []
    for _ in range(3):
        runner.step()
        runner.step()
        process = started.processes[-1]
        names.append(runner.current.row.name if runner.current else None)
        search = begin(store, process, str(names[-1]))
        runner.step()
        assert len(started.processes) == len(names)
        leave(store, search, SearchState.FINISHED)
        process.code = 0
        runner.step()
    assert names == ["high", "middle", "low"]
    assert {row(store, name).state for name in names if name} == {QueueState.ENDED}
    runner.step()
    assert len(started.processes) == 3


def test_two_runners_never_run_one_search(store: Store, started: Started, monkeypatch: Any) -> None:
    submit(store, "one")
    submit(store, "two")
    first, second = Runner(store, lambda _: None), Runner(store, lambda _: None)
    monkeypatch.setattr(first, "_owner", ELSEWHERE)
    me, parent = lease.this_process(), psutil.Process().parent()
    assert parent is not None
    monkeypatch.setattr(second, "_owner", Owner(me.host, me.boot, parent.pid, lease.start_time(parent)))
    first.step()
    second.step()
    assert {process.row for process in started.processes} == {row(store, "one").id, row(store, "two").id}
    third = Runner(store, lambda _: None)
    third.step()
    assert third.current is None
    assert len(started.processes) == 2


def test_a_machine_on_which_a_search_is_driven_already_takes_no_other(
    runner: Runner, store: Store, started: Started
) -> None:
    def by_hand(session: Any) -> None:
        searches.take(
            session, searches.create(session, "hand", {}, {}, "/tmp/hand", None), lease.this_process()
        )

    store.write(by_hand)
    submit(store, "queued")
    runner.step()
    assert started.processes == []


def test_a_higher_priority_makes_the_running_one_pause_and_it_goes_on_afterwards(
    runner: Runner, store: Store, started: Started
) -> None:
    submit(store, "long", 5)
    runner.step()
    search = begin(store, started.processes[0], "long")
    runner.step()
    submit(store, "urgent", 9)
    runner.step()
    runner.step()
    asked = store.write(lambda s: s.query(Request).all())
    assert [(one.kind, one.payload["by"]) for one in asked] == [("pause", "runner")]
    assert "urgent" in asked[0].payload["text"]
    leave(store, search, SearchState.PAUSED, "paused on request")
    started.processes[0].code = 0
    runner.step()
    assert (row(store, "long").state, row(store, "long").held) == (QueueState.WAITING, False)
    runner.step()
    assert started.processes[1].row == row(store, "urgent").id
    other = begin(store, started.processes[1], "urgent")
    leave(store, other, SearchState.FINISHED)
    started.processes[1].code = 0
    runner.step()
    runner.step()
    assert started.processes[2].row == row(store, "long").id


def test_what_a_person_pauses_is_held_and_the_next_one_has_the_machine(
    runner: Runner, store: Store, started: Started
) -> None:
    submit(store, "first")
    submit(store, "second")
    runner.step()
    search = begin(store, started.processes[0], "first")
    assert "pauses" in (ask(store, "first", Ask.PAUSE) or "")
    leave(store, search, SearchState.PAUSED, "paused on request")
    started.processes[0].code = 0
    runner.step()
    assert row(store, "first").held
    runner.step()
    assert started.processes[1].row == row(store, "second").id
    assert ask(store, "first", Ask.RESUME) is None
    assert not row(store, "first").held


def test_a_pause_that_is_taken_back_before_the_runner_has_looked_holds_nothing(
    runner: Runner, store: Store, started: Started
) -> None:
    submit(store, "first")
    runner.step()
    search = begin(store, started.processes[0], "first")
    ask(store, "first", Ask.PAUSE)
    leave(store, search, SearchState.PAUSED, "paused on request")
    assert ask(store, "first", Ask.RESUME) is None
    started.processes[0].code = 0
    runner.step()
    assert not row(store, "first").held
    runner.step()
    assert len(started.processes) == 2


def test_a_claim_without_a_living_runner_is_taken_over_at_once(store: Store, started: Started) -> None:
    submit(store, "one")
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    me = lease.this_process()
    first = Runner(store, lambda _: None)
    first._owner = Owner(me.host, me.boot, dead.pid, 1.0)
    first.step()
    second = Runner(store, lambda _: None)
    second.step()
    assert [process.row for process in started.processes] == [row(store, "one").id] * 2
    stale, mine = started.processes
    with pytest.raises(Withdrawn):
        begin(store, stale, "one")
    begin(store, mine, "one")


def test_a_search_that_outlives_its_runner_is_looked_after_by_the_next(
    store: Store, started: Started
) -> None:
    submit(store, "one")
    first = Runner(store, lambda _: None)
    me = lease.this_process()
    first._owner = Owner(me.host, me.boot, 2**22 + 9, 1.0)
    first.step()
    search = begin(store, started.processes[0], "one")
    second = Runner(store, lambda _: None)
    second.step()
    assert len(started.processes) == 1
    assert second.current is not None
    second.step()
    leave(store, search, SearchState.FINISHED)
    second.step()
    assert row(store, "one").state == QueueState.ENDED


def test_a_runner_of_another_host_is_believed_until_its_counter_stood_still(
    store: Store, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(store, "one")
    first = Runner(store, lambda _: None)
    first._owner = ELSEWHERE
    first.step()
    second = Runner(store, lambda _: None)
    second.step()
    second.step()
    assert len(started.processes) == 1
    monkeypatch.setattr(lease, "TTL_SECONDS", -1.0)
    second.step()
    assert len(started.processes) == 2


def test_a_config_that_is_refused_fails_its_row_with_the_words_of_the_command(
    runner: Runner, store: Store, started: Started
) -> None:
    submit(store, "one")
    runner.step()
    started.processes[0].code, started.processes[0].words = 2, "data.path: no such folder"
    runner.step()
    assert (row(store, "one").state, row(store, "one").reason) == (
        QueueState.FAILED,
        "data.path: no such folder",
    )
    runner.step()
    assert len(started.processes) == 1
    assert "waits in the queue" in (ask(store, "one", Ask.RESUME) or "")
    runner.step()
    assert len(started.processes) == 2


def test_a_process_that_dies_is_tried_again_later_and_at_last_held(
    runner: Runner, store: Store, started: Started
) -> None:
    submit(store, "one")
    for times in (1, 2, 3):
        runner.step()
        assert len(started.processes) == times
        started.processes[-1].code = -9
        runner.step()
        runner.step()
        assert len(started.processes) == times
        store.write(lambda s: s.query(Queue).update({"not_before": None}))
    assert row(store, "one").held
    assert "3 times" in (row(store, "one").reason or "")


def test_a_search_that_is_stopped_before_it_begins_never_begins(
    runner: Runner, store: Store, started: Started
) -> None:
    submit(store, "one")
    runner.step()
    assert "out of the queue" in (ask(store, "one", Ask.STOP) or "")
    with pytest.raises(Withdrawn):
        begin(store, started.processes[0], "one")
    runner.step()
    started.processes[0].code = -15
    runner.step()
    assert runner.current is None
    assert row(store, "one").state == QueueState.ENDED


def test_as_a_runner_ends_what_runs_is_paused_and_waits_for_the_next(
    runner: Runner, store: Store, started: Started
) -> None:
    submit(store, "one")
    submit(store, "two", 9)
    runner.step()
    search = begin(store, started.processes[0], "two")
    runner.end()
    runner.step()
    assert [one.payload["text"] for one in store.write(lambda s: s.query(Request).all())] == [
        "its runner was ended"
    ]
    leave(store, search, SearchState.PAUSED)
    started.processes[0].code = 0
    runner.step()
    assert runner.current is None
    runner.run()
    assert (row(store, "two").state, row(store, "two").held) == (QueueState.WAITING, False)
    assert len(started.processes) == 1


def test_what_nobody_here_was_allowed_to_import_waits_and_says_so(
    runner: Runner, store: Store, started: Started
) -> None:
    submit(store, "one", modules=("mine",))
    runner.step()
    assert started.processes == []
    assert "--plugin mine" in (row(store, "one").reason or "")


def test_a_name_is_taken_by_a_search_and_by_what_waits(store: Store) -> None:
    submit(store, "one")
    with pytest.raises(NameTaken):
        submit(store, "one")
    store.write(lambda s: queue.forget(s, "one"))
    submit(store, "one")
    store.write(lambda s: searches.create(s, "two", {}, {}, "/tmp/two", None))
    with pytest.raises(NameTaken):
        submit(store, "two")
