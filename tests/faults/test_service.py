"""A real `paretovit serve` with a queue: priorities, a killed runner, and a search that is submitted, paused, resumed
and stopped through the REST API."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from search import config
from search.store.models import Candidate, Queue, Search
from search.store.session import Store, open_store
from search.store.write import queue

CONFIG = """
name: {name}
data: {{source: digits, train_limit: 200, val_limit: 100}}
space: {{preset: tiny, families: [vit], vit: {{depth: [1, 2], heads: [1, 2], head_width: [16]}}}}
training: {{epochs: {epochs}, batch_size: 64}}
cost: {{max_seconds: 0.05}}
search: {{max_candidates: {candidates}, rungs: none, workers: 1, engine: inline}}
baselines: {{}}
"""


@dataclass
class Service:
    process: subprocess.Popen[str]
    port: int
    token: str
    store: Store

    def ask(self, method: str, path: str, body: str = "") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, body, {"Authorization": f"Bearer {self.token}"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        assert response.status in (200, 201), text
        return json.loads(text)

    def state(self, name: str) -> str:
        return self.ask("GET", f"/api/searches/{name}")["search"]["state"]

    def child(self, part: str) -> psutil.Process:
        children = psutil.Process(self.process.pid).children()
        return next(child for child in children if part in child.cmdline())


def until(condition: Callable[[], Any], what: str, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not in {seconds:g} s: {what}"
        time.sleep(0.2)


def described(name: str, epochs: int = 3, candidates: int = 2) -> str:
    return CONFIG.format(name=name, epochs=epochs, candidates=candidates)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Two searches wait as it starts."""
    store = open_store(str(tmp_path / "night.db"), create=True)
    for name, priority in (("low", 3), ("high", 8)):
        values = config.load_text(described(name, epochs=20)).to_dict()
        store.write(lambda s, n=name, v=values, p=priority: queue.add(s, n, v, (), p, None))
    process = subprocess.Popen(
        [sys.executable, "-m", "search.cli.main", "serve", "--port", "0", "--db", str(tmp_path / "night.db")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    found = re.fullmatch(r"ready http://127\.0\.0\.1:(\d+)/\?token=([\w-]+)\n", process.stdout.readline())
    assert found is not None
    yield Service(process, int(found[1]), found[2], store)
    mine = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    for one in (*mine, process):
        if isinstance(one, psutil.Process) or one.poll() is None:
            one.kill()
    process.communicate()
    store.close()


def test_a_night(service: Service) -> None:
    # The higher priority goes first, and a killed runner takes neither its search nor the pages down.
    until(lambda: service.state("high") == "running", "the first search runs")
    killed = service.child("runner")
    driver = service.store.write(lambda s: s.query(Search).filter_by(name="high").one().owner_pid)
    killed.send_signal(signal.SIGKILL)
    assert service.state("high") == "running"
    until(lambda: service.state("high") == "finished", "the first search ends")
    until(lambda: service.state("low") == "finished", "the second search ends")
    assert service.child("runner").pid != killed.pid
    assert not psutil.pid_exists(driver)
    rows = service.store.write(lambda s: {row.name: row for row in s.query(Search).all()})
    assert rows["high"].ended <= rows["low"].started
    assert rows["high"].lease == 1  # the same driver from its begin to its end
    counts = service.store.write(lambda s: s.query(Candidate).filter(Candidate.number > 0).count())
    assert counts == 4

    # One more comes through the API, rests, goes on and is stopped.
    assert (
        service.ask("POST", "/api/searches", described("third", epochs=4000, candidates=1))["name"] == "third"
    )
    until(lambda: service.state("third") == "running", "the third search runs")
    until(lambda: service.ask("GET", "/api/searches/third")["epochs"] > 2, "it trains")
    assert "pauses" in service.ask("POST", "/api/searches/third/pause")["told"]
    until(lambda: service.state("third") == "paused", "it rests")
    before = service.ask("GET", "/api/searches/third")["epochs"]
    until(lambda: service.ask("GET", "/api/queue")["queue"][0]["held"], "its row is held")
    assert "in the queue" in service.ask("POST", "/api/searches/third/resume")["told"]
    until(lambda: service.ask("GET", "/api/searches/third")["epochs"] > before, "it trains on")
    service.ask("POST", "/api/searches/third/stop?now=true")
    until(lambda: service.state("third") == "stopped", "it is stopped")
    until(lambda: not service.ask("GET", "/api/queue")["queue"], "the queue is empty")
    assert {row.state for row in service.store.write(lambda s: s.query(Queue).all())} == {"ended"}

    # It ends with nothing left behind.
    children = psutil.Process(service.process.pid).children(recursive=True)
    service.process.terminate()
    assert service.process.wait(60) == 0
    assert psutil.wait_procs(children, timeout=10)[1] == []
