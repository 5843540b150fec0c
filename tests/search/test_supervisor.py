from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from search import supervisor
from search.supervisor import Child, Supervisor


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STEP_SECONDS", 0.02)


def test_a_child_that_dies_is_started_again_later_and_later_and_at_last_left_down() -> None:
    child = Child("runner", list)
    waits = []
    for time_ in (0.0, 1.0, 2.0, 3.0, 4.0):
        assert not child.given_up
        child.died(time_)
        waits.append(child.not_before - time_)
    assert waits[:4] == [0.0, 1.0, 3.0, 7.0]
    assert child.given_up


def test_deaths_of_long_ago_are_forgotten() -> None:
    child = Child("runner", list)
    for time_ in (0.0, 1.0, 2.0, 3.0):
        child.died(time_)
    child.died(3.0 + supervisor.WITHIN_SECONDS)
    assert not child.given_up


def test_neither_child_takes_the_other_down_and_a_signal_ends_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    warned: list[str] = []
    short, long = Child("short", lambda: ["--version"]), Child("long", lambda: ["serve", "--only", "runner"])
    monkeypatch.setenv("PARETOVIT_DB", str(tmp_path / "q.db"))
    heard = threading.Event()
    long.said = lambda line: heard.set() if line == "runner ready" else None
    started = Supervisor([short, long], warned.append)

    def end() -> None:
        heard.wait(60)
        until = time.monotonic() + 60
        while not short.given_up and time.monotonic() < until:
            short.not_before = 0.0
            time.sleep(0.02)
        assert long.process is not None
        assert long.process.poll() is None
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=end)
    thread.start()
    assert started.run() == 0
    thread.join()
    assert heard.is_set()
    assert warned[-1] == "the short ended with 0; it is left down"
    assert len(warned) == supervisor.MOST_DEATHS
    assert long.process is not None
    assert long.process.returncode == 0
    assert not psutil.pid_exists(long.process.pid)


def test_it_ends_when_nothing_is_left_to_look_after() -> None:
    child = Child("broken", lambda: ["no-such-command"])
    child.deaths.extend([time.monotonic()] * (supervisor.MOST_DEATHS - 1))
    warned: list[str] = []
    assert Supervisor([child], warned.append).run() == 1
    assert warned == ["the broken ended with 2; it is left down"]
