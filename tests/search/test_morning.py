"""The summary that a search leaves for the morning, and who is told of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from search import morning, notify
from search.config import from_dict
from search.errors import UsageError
from search.front import front_view
from search.store.read.searches import search_by_name


@pytest.fixture
def summed(filled: Any) -> dict[str, Any]:
    with filled.store.read() as reader:
        return morning.of(reader, front_view(reader, search_by_name(reader, filled.name)))


@pytest.fixture
def listener() -> Iterator[tuple[str, list[Any]]]:
    """An address on this machine, and what has been posted to it."""
    posted: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", posted
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_names_the_best_for_each_cost_cheapest_first_and_the_knee(summed: dict[str, Any]) -> None:
    costs = [each["values"]["latency_ms"] for each in summed["best"]]
    accuracies = [each["values"]["accuracy"] for each in summed["best"]]
    assert len(costs) >= 2
    assert costs == sorted(costs)
    assert accuracies == sorted(accuracies)
    assert summed["knee"]["candidate"] in [each["candidate"] for each in summed["best"]]


def test_it_says_what_failed_and_what_may_go_on(summed: dict[str, Any]) -> None:
    counts = summed["candidates"]
    assert len(summed["failed"]) == counts.get("failed", 0) > 0
    assert all(each["reason"] for each in summed["failed"])
    assert summed["left"] == counts.get("stopped", 0) + counts.get("waiting", 0) > 0
    assert "may train on: `paretovit resume" in morning.text(summed)


def test_its_text_holds_every_member_of_the_front(summed: dict[str, Any]) -> None:
    text = morning.text(summed)
    assert all(f"- {each['name']} {each['family']}: " in text for each in summed["best"])


def test_it_is_written_beside_the_report_and_posted(
    summed: dict[str, Any], listener: tuple[str, list[Any]], tmp_path: Path
) -> None:
    url, posted = listener
    said = morning.tell(summed, tmp_path, url)
    assert (tmp_path / "summary.md").read_text() == morning.text(summed)
    assert posted == [json.loads(json.dumps(summed))]
    assert said == [f"summary: {tmp_path / 'summary.md'}", f"posted to {url}"]


def test_an_address_that_does_not_answer_is_told_and_changes_nothing(
    summed: dict[str, Any], listener: tuple[str, list[Any]], tmp_path: Path
) -> None:
    said = morning.tell(summed, tmp_path, "http://127.0.0.1:9/hook")
    assert said[1].startswith("warning: notify.webhook: 127.0.0.1: ")
    assert (tmp_path / "summary.md").exists()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.b", "nowhere", "https://"])
def test_only_web_addresses_are_posted_to(url: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        notify.check(url)
    with pytest.raises(UsageError, match=r"notify\.webhook"):
        from_dict({"name": "a", "data": {"source": "digits"}, "notify": {"webhook": url}})
