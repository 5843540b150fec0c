"""A dashboard to ask: in this process, byte for byte as a server would pass the request on, and as a real command."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from fastapi.routing import iter_route_contexts

from dashboards.app import Dashboard, create_app
from search.store.location import locate

TOKEN = "tests-token-that-nobody-guesses"
PORT = 8770
HOST = f"127.0.0.1:{PORT}"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Asked:
    """A dashboard in this process. A stream is left as soon as it has begun."""

    app: Dashboard
    runner: asyncio.Runner
    headers: Mapping[str, str] = field(default_factory=lambda: {"host": HOST, **BEARER})

    def get(
        self,
        target: str,
        headers: Mapping[str, str | None] | None = None,
        method: str = "GET",
        body: bytes = b"",
    ) -> Answer:
        """target: path and query as they stand in the request line. headers: added; None takes one away."""
        given = {**self.headers, **(headers or {})}
        pairs = [(name, value) for name, value in given.items() if value is not None]
        return self.runner.run(_ask(self.app, method, target, pairs, body))

    def routes(self) -> list[str]:
        """A target for every route of the application, with names and numbers that are there."""
        values = {"name": "digits", "number": "3", "digest": "0", "candidate": "3"}
        found = []
        for context in iter_route_contexts(self.app.routes):
            path = context.path
            assert path is not None
            found.append(re.sub(r"\{(\w+)(:\w+)?\}", lambda match: values[match[1]], path))
        return found


async def _ask(
    app: Dashboard, method: str, target: str, headers: list[tuple[str, str]], body_sent: bytes
) -> Answer:
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", PORT),
    }
    start: dict[str, Any] = {}
    body = bytearray()
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            while not _is_stream(start):
                await asyncio.sleep(0.001)
            return {"type": "http.disconnect"}
        asked = True
        return {"type": "http.request", "body": body_sent, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        else:
            body.extend(message.get("body", b""))

    await app(scope, receive, send)
    found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], found, bytes(body))


def _is_stream(start: Mapping[str, Any]) -> bool:
    return any(value.startswith(b"text/event-stream") for _, value in start.get("headers", []))


@pytest.fixture
def ask_at() -> Iterator[Callable[..., Asked]]:
    """A dashboard on the database at a path or URL."""
    with asyncio.Runner() as runner:
        yield lambda db, port=PORT, **more: Asked(create_app(locate(str(db)), TOKEN, port, **more), runner)


@pytest.fixture(scope="session")
def filled_once(fill_at: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A filled database for all tests that leave it as it is."""
    made = fill_at(tmp_path_factory.mktemp("filled") / "filled.db")
    made.store.close()
    return made


@pytest.fixture
def asked(filled_once: Any, ask_at: Callable[..., Asked]) -> Asked:
    """A dashboard on the filled database, asked with the token."""
    return ask_at(filled_once.path)


@dataclass(frozen=True)
class Running:
    """A `paretovit dashboard` of its own."""

    process: subprocess.Popen[str]
    port: int
    token: str
    errors: Path

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code after the signal."""
        self.process.send_signal(number)
        return self.process.wait(20)


@pytest.fixture
def start_dashboard(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts the command on a database, with further arguments, and waits until it is ready."""
    started: list[subprocess.Popen[str]] = []

    def start(db: Path | str, *arguments: str, **variables: str) -> Running:
        errors = tmp_path / f"errors{len(started)}"
        with errors.open("w") as file:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "search.cli.main",
                    "dashboard",
                    "--port",
                    "0",
                    "--db",
                    str(db),
                    *arguments,
                ],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env=os.environ | variables,
            )
        started.append(process)
        line = _line(process)
        found = re.fullmatch(r"ready http://127\.0\.0\.1:(\d+)/\?token=([\w-]+)\n", line)
        assert found, f"{line!r} {errors.read_text()}"
        return Running(process, int(found[1]), found[2], errors)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    """Its first line of output, within half a minute."""
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
    return lines.get(timeout=30)
