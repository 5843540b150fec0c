"""Event streams over a real connection, of a dashboard in a process of its own."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest


class Stream:
    """An open event stream. Reading takes at most ten seconds."""

    def __init__(self, running: Any, path: str, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {running.token}", **headers})
        self.response = self._connection.getresponse()

    def event(self) -> dict[str, str]:
        """The next event by field, comments left out."""
        fields: dict[str, str] = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                return fields

    def close(self) -> None:
        self.response.close()
        self._connection.close()


@pytest.fixture
def running(filled: Any, start_dashboard: Any) -> Any:
    return start_dashboard(filled.path)


@pytest.fixture
def stream(running: Any) -> Iterator[Any]:
    opened: list[Stream] = []

    def follow(path: str, **headers: str) -> Stream:
        opened.append(Stream(running, path, **headers))
        return opened[-1]

    yield follow
    for one in opened:
        one.close()


def finish(filled: Any, number: int) -> None:
    """A candidate that was waiting finishes, as a driver in another process would write it."""
    from search.states import CandidateState
    from search.store.write import candidates

    filled.store.write(
        lambda session: candidates.set_state(
            candidates.by_number(session, 1, number), CandidateState.FINISHED
        )
    )


def test_a_candidate_that_finishes_elsewhere_is_told_within_moments(filled: Any, stream: Any) -> None:
    both = stream("/api/changes"), stream("/api/searches/digits/changes")
    for one in both:
        assert one.response.status == 200
        assert one.response.headers["content-type"].startswith("text/event-stream")
        assert one.response.headers["cache-control"] == "no-store"
    time.sleep(1.5)  # until it has looked once
    written = time.monotonic()
    finish(filled, 19)
    for one in both:
        event = one.event()
        assert event["event"] == "changed"
        data = json.loads(event["data"])
        assert data == {"revision": event["id"], "searches": ["digits"]}
    assert time.monotonic() - written < 4


def test_a_browser_that_comes_back_hears_at_once_what_it_missed(filled: Any, stream: Any) -> None:
    first = stream("/api/searches/digits/changes?since=none")
    known = first.event()["id"]
    first.close()
    finish(filled, 19)
    again = stream("/api/searches/digits/changes?since=none", **{"Last-Event-ID": known})
    event = again.event()
    assert event["id"] != known
    assert stream(f"/api/searches/digits/changes?since={known}").event()["id"] == event["id"]


def test_the_revision_of_the_stream_is_the_one_that_a_page_reads(filled: Any, stream: Any) -> None:
    from search.store.read.revision import revision
    from search.store.read.searches import search_by_name

    with filled.store.read() as reader:
        expected = revision(reader, search_by_name(reader, "digits"))
    assert stream("/api/searches/digits/changes?since=none").event()["id"] == expected


def test_a_stream_holds_no_database_open_and_ends_with_its_listener(
    filled: Any, running: Any, stream: Any
) -> None:
    import psutil

    process = psutil.Process(running.process.pid)
    opened = [stream("/api/searches/digits/changes") for _ in range(5)]
    time.sleep(0.3)
    held = [file.path for _ in range(10) for file in process.open_files() if file.path.endswith(".db")]
    assert len(held) < 10  # a look at it now and then, not a hold
    for one in opened:
        one.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and len(process.net_connections()) > 1:
        time.sleep(0.1)
    assert len(process.net_connections()) == 1
    finish(filled, 19)
    time.sleep(1.2)
    assert running.end() == 0
    assert running.errors.read_text() == ""
