"""Searches on Ray whose driver or workers are killed. Slow: each start of Ray takes seconds."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

HERE = Path(__file__).parent
CANDIDATES = 6
CONFIG = f"""
name: kills
data: {{source: digits, train_limit: 200, val_limit: 100}}
space: {{preset: tiny, families: [vit], vit: {{depth: [1, 2], heads: [1, 2], head_width: [16]}}}}
training: {{epochs: 3, batch_size: 64}}
cost: {{max_seconds: 0.05}}
search: {{max_candidates: {CANDIDATES}, rungs: [1, 3], workers: 2}}
"""
ENDED = {"rejected", "stopped", "finished", "failed"}


class Searching:
    """One search in a folder of its own, run by processes that may be killed."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        self.folder = folder
        self.db = folder / "kills.db"
        self.pids: list[int] = []
        (folder / "search.yaml").write_text(config)
        (folder / "search.py").write_text("raise ImportError('a module of the user's, not ours')\n")

    def start(
        self, *arguments: str, kill: str = "none", nth: int = 1, worker: str = ""
    ) -> subprocess.Popen[str]:
        environment = dict(os.environ) | {"PARETOVIT_PLUGINS": "faulty_models,killing"}
        if worker:
            environment["KILL_WORKER"] = f"{worker}:{self.folder / worker.partition(':')[0]}"
        command = [sys.executable, str(HERE / "killing.py"), kill, str(nth), *arguments, "--db", str(self.db)]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.pids.append(process.pid)
        return process

    def run(self, *arguments: str, **kill: Any) -> tuple[int, str]:
        process = self.start(*arguments, **kill)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.db)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def history(self) -> list[tuple[Any, ...]]:
        return self.rows(
            "SELECT number, digest, state, rung, json_extract(measured, '$.accuracy') "
            "FROM candidate WHERE number > 0 ORDER BY number"
        )


@pytest.fixture
def searching(tmp_path: Path) -> Searching:
    return Searching(tmp_path)


def assert_whole(search: Searching, count: int = CANDIDATES) -> None:
    """Every candidate once, each result once, nothing open, and Optuna told of each."""
    assert search.rows("SELECT state FROM search") == [("finished",)]
    numbers = search.rows("SELECT number FROM candidate WHERE number > 0 ORDER BY number")
    assert [number for (number,) in numbers] == list(range(1, count + 1))
    assert {state for (state,) in search.rows("SELECT state FROM candidate")} <= ENDED
    assert {state for (state,) in search.rows("SELECT state FROM job")} <= {"done", "failed"}
    assert {state for (state,) in search.rows("SELECT state FROM attempt")} <= {"done", "failed", "lost"}
    twice = "SELECT job_id FROM attempt WHERE state = 'done' GROUP BY job_id HAVING COUNT(*) > 1"
    assert search.rows(twice) == []
    figures = (
        "SELECT candidate_id FROM measurement WHERE candidate_id IS NOT NULL AND figures NOT LIKE '%drifted%' "
        "GROUP BY candidate_id HAVING COUNT(*) > 1"
    )
    assert search.rows(figures) == []
    evaluations = (
        "SELECT candidate_id FROM evaluation GROUP BY candidate_id, split, epoch HAVING COUNT(*) > 1"
    )
    assert search.rows(evaluations) == []
    assert search.rows("SELECT number FROM candidate WHERE number > 0 AND NOT told") == []
    assert search.rows("SELECT number FROM trials WHERE state IN ('RUNNING', 'WAITING')") == []
    known = {name for (name,) in search.rows("SELECT path FROM artifact WHERE kind = 'checkpoint'")}
    (artifacts,) = search.rows("SELECT artifacts FROM search")[0]
    on_disk = {
        p.relative_to(artifacts).as_posix() for p in Path(artifacts, "checkpoints").rglob("*") if p.is_file()
    }
    assert on_disk == known


def left_over(search: Searching) -> list[Path]:
    """Scratch folders of the search's processes."""
    root = Path(f"/tmp/pv-{os.getuid()}")
    return [folder for pid in search.pids for folder in root.glob(f"{pid}-*")]


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_driver_killed_at_every_boundary_in_turn_ends_as_if_it_had_not_been(searching: Searching) -> None:
    killed(searching, "run", "search.yaml", kill="dispatch", nth=3)
    for boundary, nth in [("ask", 1), ("dispatch", 2), ("outcome", 2), ("commit", 2), ("tell", 1)]:
        killed(searching, "resume", "kills", kill=boundary, nth=nth)
    for boundary in ("rename-both", "renamed-both"):
        killed(searching, "resume", "kills", worker=f"{boundary}:1")
    killed(searching, "resume", "kills", kill="end")
    assert_resumes_whole(searching)
    code, output = searching.run("resume", "kills")
    assert (code, "nothing is left" in output) == (0, True)


def test_a_driver_killed_between_commit_and_tell_and_at_a_rename_loses_nothing(searching: Searching) -> None:
    killed(searching, "run", "search.yaml", kill="commit", nth=4)
    killed(searching, "resume", "kills", worker="renamed-both:1")
    assert_resumes_whole(searching)


def killed(search: Searching, *arguments: str, **kill: Any) -> None:
    code, output = search.run(*arguments, **kill)
    assert code == -signal.SIGKILL, f"{kill}: {output}"


def assert_resumes_whole(search: Searching) -> None:
    code, output = search.run("resume", "kills")
    assert code == 0, output
    assert_whole(search)
    assert left_over(search) == []


def test_a_worker_killed_mid_epoch_costs_one_retry_of_one_job(searching: Searching) -> None:
    code, output = searching.run("run", "search.yaml", worker="epoch:5")
    assert code == 0, output
    assert_whole(searching)
    assert searching.rows("SELECT COUNT(*) FROM attempt WHERE state = 'lost'") == [(1,)]
    assert searching.rows("SELECT MAX(number) FROM attempt") == [(2,)]


def test_candidates_that_go_wrong_are_failed_with_a_reason_and_the_others_complete(
    searching: Searching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREAK_CANDIDATES", "1")
    code, output = searching.run("run", "search.yaml", "--set", "limits.max_attempts=2")
    assert code == 0, output
    assert_whole(searching)
    found = dict(searching.rows("SELECT number, reason FROM candidate WHERE number > 0 AND state = 'failed'"))
    assert sorted(found) == [1, 2, 3, 4]
    assert "the layer does not like its input" in found[1]
    assert "not finite" in found[2]
    assert "out of memory" in found[3]
    assert "its worker died" in found[4]
    assert searching.rows("SELECT COUNT(*) FROM attempt WHERE state = 'lost'") == [(2,)]


@pytest.mark.parametrize("part", ["raylet", pytest.param("gcs_server", marks=pytest.mark.chaos)])
def test_a_driver_whose_ray_goes_down_ends_with_a_word_and_can_be_resumed(
    searching: Searching, part: str
) -> None:
    process = searching.start("run", "search.yaml")
    wait_for(lambda: searching.db.exists() and searching.rows("SELECT 1 FROM attempt WHERE state = 'done'"))
    children = psutil.Process(process.pid).children(recursive=True)
    next(child for child in children if child.name() == part).kill()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    told = f"Ray went down on this machine; go on with: paretovit resume kills --db {searching.db}\n"
    assert told in output
    assert left_over(searching) == []
    assert_resumes_whole(searching)


def test_first_ctrl_c_drains_and_second_leaves_at_once_with_nothing_left(searching: Searching) -> None:
    process = searching.start("run", "search.yaml")
    wait_for(lambda: searching.db.exists() and searching.rows("SELECT 1 FROM epoch"))
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert f"Go on later with: paretovit resume kills --db {searching.db}\n" in output
    assert f"go on with: paretovit resume kills --db {searching.db}\n" in output
    assert searching.rows("SELECT state FROM search") == [("paused",)]
    assert searching.rows("SELECT 1 FROM attempt WHERE state = 'running'") == []

    done = searching.rows("SELECT COUNT(*) FROM attempt WHERE state = 'done'")
    process = searching.start("resume", "kills")
    wait_for(lambda: searching.rows("SELECT COUNT(*) FROM attempt WHERE state = 'done'") > done)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=10)
    assert process.returncode == 130, output
    assert "left; go on with: paretovit resume kills" in output
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert left_over(searching) == []

    code, output = searching.run("resume", "kills")
    assert code == 0, output
    assert_whole(searching)


@pytest.mark.chaos
def test_one_worker_gives_the_same_search_across_kills_once_costs_are_known(tmp_path: Path) -> None:
    config = CONFIG.replace("workers: 2", "workers: 1")
    first = Searching(tmp_path, config)
    assert first.run("run", "search.yaml")[0] == 0
    (tmp_path / "search.yaml").write_text(config.replace("name: kills", "name: again"))
    assert first.run("run", "search.yaml", kill="outcome", nth=4)[0] == -signal.SIGKILL
    code, output = first.run("resume", "again")
    assert code == 0, output
    history = (
        "SELECT number, digest, c.state, rung, json_extract(measured, '$.accuracy') "
        "FROM candidate c JOIN search s ON s.id = c.search_id WHERE s.name = '{}' AND number > 0 ORDER BY number"
    )
    assert first.rows(history.format("again")) == first.rows(history.format("kills"))


def wait_for(ready: Callable[[], Any], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if ready():
                return
        except sqlite3.OperationalError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"nothing came in {seconds:g} s")
