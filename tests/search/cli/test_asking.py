"""`pause`, `stop`, `resume`, `watch`, `submit`, `delete` and `status` of a search of the queue, from a terminal."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from search.states import SearchState
from search.store.models import Queue, Search
from search.store.write import queue

CONFIG = """
name: tiny
data: {source: digits, train_limit: 200, val_limit: 100}
space: {preset: tiny, families: [vit]}
training: {epochs: 3, batch_size: 64}
search: {max_candidates: 2, rungs: [1, 3], engine: inline}
baselines: {}
"""


def with_state(filled: Any, state: SearchState) -> None:
    filled.store.write(lambda s: setattr(s.query(Search).one(), "state", state))


def submit_row(filled: Any, name: str, **more: Any) -> None:
    values = {"config": {"name": name}, "plugins": (), "priority": 5, "window": None} | more
    filled.store.write(lambda s: queue.add(s, name, **values))


def test_a_search_whose_driver_is_gone_is_interrupted_and_can_be_paused_and_stopped(
    run: Any, filled: Any
) -> None:
    with_state(filled, SearchState.RUNNING)
    assert json.loads(run("status", "digits", "--json")[1])["search"]["state"] == "interrupted"
    assert run("watch", "digits")[0] == 1
    assert run("pause", "digits", "--note", "lunch") == (0, "search 'digits' is paused\n", "")
    code, out, _ = run("watch", "digits")
    assert code == 130
    assert "digits is paused (paused on request: lunch)" in out
    assert run("stop", "digits", "--now")[1] == "search 'digits' is stopped\n"
    code, out, _ = run("watch", "digits")
    assert (code, "stopped on request" in out) == (0, True)
    assert run("pause", "digits") == (
        1,
        "",
        "paretovit: search 'digits' is stopped; there is nothing to pause\n",
    )


def test_watch_tells_what_has_happened_and_leaves_with_a_finished_search(run: Any) -> None:
    code, out, _ = run("watch", "digits")
    assert code == 0
    assert out.splitlines()[-1].endswith("digits is finished")
    assert run("watch", "digit")[0] == 1


def test_a_search_in_the_queue_is_shown_held_resumed_and_taken_out(run: Any, filled: Any) -> None:
    submit_row(filled, "night", window="22:00-07:00", priority=7)
    found = json.loads(run("status", "night", "--json")[1])
    assert (found["search"]["state"], found["queue"]["before"]) == ("queued", 0)
    assert "priority 7, from 22:00-07:00, 0 before it" in run("status", "night")[1]
    names = [one["search"]["name"] for one in json.loads(run("status", "--json")[1])]
    assert names == ["night", "digits"]
    assert run("pause", "night")[0] == 0
    assert "held until it is resumed" in run("status", "night")[1]
    code, out, _ = run("watch", "night")
    assert (code, out.split(" ", 1)[1]) == (130, "night is in the queue: waiting, held back\n")
    assert "waits in the queue" in run("resume", "night")[1]
    assert run("delete", "night", "--confirm", "night")[1] == "night had not begun; it is out of the queue\n"
    assert run("status", "night")[0] == 1


def test_a_submitted_search_holds_everything_that_a_runner_needs(
    run: Any, filled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "search.yaml").write_text(CONFIG)
    monkeypatch.setenv("PARETOVIT_PLUGINS", "json")
    code, out, _ = run(
        "submit",
        str(tmp_path / "search.yaml"),
        "--set",
        "training.epochs=4",
        "--set",
        "search.rungs=[1, 4]",
        "--set",
        "artifacts=out",
    )
    assert (code, out.splitlines()[0]) == (0, "search tiny is queued with priority 5; 0 before it")
    assert "paretovit serve" in out
    row = filled.store.write(lambda s: s.query(Queue).one())
    assert row.config["training"]["epochs"] == 4
    assert row.config["artifacts"] == str(Path("out").absolute())
    assert row.plugins == {"modules": ["json"]}
    again = run("submit", str(tmp_path / "search.yaml"))
    assert (again[0], "'tiny' is in the database already" in again[2]) == (1, True)
    assert run("run", str(tmp_path / "search.yaml"))[0] == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--priority", "10"], "--priority: 10 is outside 0 to 9"),
        (["--window", "22-7"], "--window: '22-7' is no window"),
        (["--set", "training.epochs=-1"], "training.epochs"),
        (["--set", "name=digits"], "'digits' is in the database already"),
    ],
)
def test_what_cannot_run_is_refused_and_nothing_is_queued(
    run: Any, filled: Any, tmp_path: Path, options: list[str], told: str
) -> None:
    (tmp_path / "search.yaml").write_text(CONFIG)
    code, _, err = run("submit", str(tmp_path / "search.yaml"), *options)
    assert code in (1, 2)
    assert told in err
    assert len(err.splitlines()) <= 2
    assert filled.store.write(lambda s: s.query(Queue).count()) == 0


def test_a_search_is_deleted_with_what_it_has_written_and_nothing_else(
    run: Any, filled: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    (folder / "checkpoints" / "1").mkdir(parents=True)
    ours = folder / "checkpoints" / "1" / "2-1-epoch3.safetensors"
    for path in (ours, folder / "report.html", folder / ".search", folder / "mine.txt"):
        path.write_text("x")
    filled.store.write(lambda s: setattr(s.query(Search).one(), "artifacts", str(folder)))
    assert run("delete", "digits")[0] == 2
    assert run("delete", "digits", "--confirm", "digit")[0] == 2
    assert filled.store.write(lambda s: s.query(Search).count()) == 1
    code, out, _ = run("delete", "digits", "--confirm", "digits")
    assert (code, out) == (0, f"deleted digits; {folder} holds other files, and stays\n")
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert run("status", "digits")[0] == 1


def test_status_answers_while_somebody_holds_the_database(filled: Any) -> None:
    with closing(sqlite3.connect(filled.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE search SET beat = beat + 1")
        done = subprocess.run(
            [sys.executable, "-m", "search.cli.main", "status", "digits", "--json"],
            env=os.environ | {"PARETOVIT_DB": str(filled.path)},
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["search"]["name"] == "digits"
