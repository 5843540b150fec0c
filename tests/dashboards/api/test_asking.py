"""What changes something through the API: who may, what it answers, what it leaves in the database."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dashboards import commands
from search import status
from search.states import SearchState
from search.store.models import Event, Queue, Request, Search
from search.store.session import open_store

PORT = 8770
TOKEN = "tests-token-that-nobody-guesses"
COOKIE = {"authorization": None, "cookie": f"paretovit_{PORT}={TOKEN}"}
OWN = {"origin": f"http://127.0.0.1:{PORT}"}
CHANGING = [
    ("POST", "/api/searches"),
    ("POST", "/api/searches/digits/pause"),
    ("POST", "/api/searches/digits/resume"),
    ("POST", "/api/searches/digits/stop"),
    ("POST", "/api/searches/digits/notes?text=x"),
    ("DELETE", "/api/searches/digits?confirm=digits"),
]
CONFIG = b"""
name: tiny
data: {source: digits, train_limit: 200, val_limit: 100}
space: {preset: tiny, families: [vit]}
training: {epochs: 3, batch_size: 64}
search: {max_candidates: 2, rungs: [1, 3], engine: inline}
baselines: {}
"""


@pytest.fixture
def writing(filled: Any, ask_at: Callable[..., Any]) -> Any:
    """A dashboard that lets people ask, on a filled database of its own."""
    return ask_at(filled.path, may_write=True)


@pytest.fixture
def commanded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """Commands that the API runs, with their standard input; none of them is run."""
    found: list[tuple[list[str], str]] = []

    async def run(place: Any, arguments: list[str], given: str = "") -> str:
        found.append((list(arguments), given))
        row = {"name": "tiny", "priority": 5, "window": None, "before": 0, "has_runner": False}
        return json.dumps(row) if arguments[0] == "submit" else "deleted digits"

    monkeypatch.setattr(commands, "run", run)
    return found


def with_state(filled: Any, state: SearchState) -> None:
    filled.store.write(lambda s: setattr(s.query(Search).one(), "state", state))


def test_a_dashboard_that_only_shows_refuses_everything_that_changes_something(
    filled: Any, ask_at: Callable[..., Any], commanded: Any
) -> None:
    reading = ask_at(filled.path)
    for method, target in CHANGING:
        assert reading.get(target, method=method).status == 405
    assert commanded == []
    assert filled.store.write(lambda s: s.query(Request).count()) == 0
    assert 'data-ask="' not in reading.get("/searches/digits").text


def test_a_cookie_alone_changes_nothing_and_neither_does_a_foreign_page(writing: Any, commanded: Any) -> None:
    for method, target in CHANGING:
        assert writing.get(target, {"authorization": None}, method).status == 401
        assert writing.get(target, COOKIE, method).status == 403
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{PORT + 1}", ""):
            assert writing.get(target, {**COOKIE, "origin": origin}, method).status == 403
            assert writing.get(target, {"origin": origin}, method).status == 403
        assert writing.get(target, {**COOKIE, **OWN, "sec-fetch-site": "cross-site"}, method).status == 403
        assert writing.get(target, {"host": "evil.example"}, method).status == 403
    assert commanded == []


def test_a_page_of_its_own_may_ask_with_its_cookie(writing: Any, filled: Any) -> None:
    with_state(filled, SearchState.PAUSED)
    answer = writing.get("/api/searches/digits/stop", {**COOKIE, **OWN}, "POST")
    assert (answer.status, answer.json()) == (200, {"told": "search 'digits' is stopped"})


def test_pause_stop_and_resume_do_what_the_commands_do(writing: Any, filled: Any) -> None:
    with_state(filled, SearchState.RUNNING)  # and its driver is gone
    told = writing.get("/api/searches/digits/pause?note=lunch", method="POST").json()["told"]
    assert told == "search 'digits' is paused"
    assert writing.get("/api/searches/digits").json()["search"]["reason"] == "paused on request: lunch"
    answer = writing.get("/api/searches/digits/resume", method="POST")
    assert "in the queue" in answer.json()["told"]
    assert writing.get("/api/searches/digits/resume", method="POST").status == 200
    queue = writing.get("/api/queue").json()
    assert [(one["name"], one["state"], one["begun"]) for one in queue["queue"]] == [
        ("digits", "waiting", True)
    ]
    assert queue["has_runner"] is False
    assert writing.get("/api/searches/digits").json()["queue"]["before"] == 0
    writing.get("/api/searches/digits/stop?now=true", method="POST")
    assert writing.get("/api/searches/digits").json()["search"]["state"] == "stopped"
    assert writing.get("/api/queue").json()["queue"] == []


def test_what_has_ended_cannot_be_asked_for_anything(writing: Any) -> None:
    for what in ("pause", "stop", "resume"):
        answer = writing.get(f"/api/searches/digits/{what}", method="POST")
        assert answer.status == 409
        assert "is finished" in answer.json()["detail"]
    answer = writing.get("/api/searches/digit/pause", method="POST")
    assert answer.status == 404
    assert "did you mean" in answer.json()["detail"]


def test_a_note_is_an_event(writing: Any, filled: Any) -> None:
    text = "<b>loud</b> fan"
    assert writing.get(f"/api/searches/digits/notes?text={quote(text)}", method="POST").status == 200
    assert filled.store.write(lambda s: s.query(Event).filter_by(kind="note").one().text) == text
    assert writing.get("/api/searches/digits/notes", method="POST").status == 422
    assert text not in writing.get("/searches/digits").text


def test_a_search_is_deleted_only_with_its_name(writing: Any, commanded: Any) -> None:
    for query in ("", "?confirm=", "?confirm=digit", "?confirm=DIGITS"):
        assert writing.get(f"/api/searches/digits{query}", method="DELETE").status == 422
    assert commanded == []
    assert writing.get("/api/searches/digits?confirm=digits", method="DELETE").status == 200
    assert commanded == [(["delete", "--confirm=digits", "--", "digits"], "")]
    assert writing.get("/api/searches/other?confirm=other", method="DELETE").status == 404


def test_a_config_is_passed_on_as_it_is_and_no_option_can_be_smuggled_in(
    writing: Any, commanded: Any
) -> None:
    target = "/api/searches?priority=7&window=" + quote("--db=/etc/passwd")
    assert writing.get(target, method="POST", body=CONFIG).status == 201
    assert commanded == [
        (["submit", "-", "--json", "--priority=7", "--window=--db=/etc/passwd"], CONFIG.decode())
    ]


def test_what_is_no_config_is_refused_before_anything_is_run(writing: Any, commanded: Any) -> None:
    assert writing.get("/api/searches", method="POST", body=b"a" * 1_100_000).status == 413
    assert writing.get("/api/searches", method="POST", body=b"\xff\xfe").status == 422
    assert writing.get("/api/searches?priority=x", method="POST", body=CONFIG).status == 422
    assert commanded == []


def test_a_search_is_submitted_with_the_checks_and_the_words_of_the_command_line(
    tmp_path: Path, ask_at: Callable[..., Any], filled_once: Any
) -> None:
    writing = ask_at(tmp_path / "new.db", may_write=True)
    assert writing.get("/api/queue").json() == {"has_runner": False, "queue": []}
    answer = writing.get("/api/searches?priority=7&window=22:00-7:00", method="POST", body=CONFIG)
    assert (answer.status, answer.json()["window"]) == (201, "22:00-07:00"), answer.text
    store = open_store(str(tmp_path / "new.db"), create=False)
    row = store.write(lambda s: s.query(Queue).one())
    store.close()
    assert (row.name, row.priority, row.config["training"]["epochs"]) == ("tiny", 7, 3)
    shown = writing.get("/api/searches/tiny").json()
    assert (shown["search"]["state"], shown["queue"]["window"]) == ("queued", "22:00-07:00")
    store = open_store(str(filled_once.path), create=False)
    with store.read() as reader:
        assert set(shown) == set(status.status(reader, "digits"))  # of one that has begun
    store.close()
    assert [one["search"]["name"] for one in writing.get("/api/searches").json()] == ["tiny"]
    assert "tiny" in writing.get("/").text
    wrong = writing.get("/api/searches", method="POST", body=CONFIG.replace(b"epochs: 3", b"epochs: -3"))
    assert wrong.status == 422
    assert wrong.json()["detail"].startswith("standard input:5: training.epochs: ")
    relative = writing.get("/api/searches", method="POST", body=b'{"name": "x", "data": {"path": "pics"}}')
    assert "absolute path" in relative.json()["detail"]
    again = writing.get("/api/searches", method="POST", body=CONFIG)
    assert again.status == 409
    assert "'tiny' is in the database already" in again.json()["detail"]
