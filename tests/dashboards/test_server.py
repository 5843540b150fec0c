"""The command as a process of its own: how it starts, whom it answers, how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from dashboards import server
from search.cli.main import main
from search.errors import UsageError, UserError


def get(running: Any, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    connection.request("GET", path, headers={"Authorization": f"Bearer {running.token}", **headers})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def raw(running: Any, request: str) -> str:
    """What the server answers to these bytes."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.sendall(request.encode("latin-1"))
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts).decode("latin-1")


def test_it_answers_as_soon_as_it_says_ready(filled_once: Any, start_dashboard: Any) -> None:
    running = start_dashboard(filled_once.path)
    status, text = get(running, "/api/searches")
    assert status == 200
    assert [one["search"]["name"] for one in json.loads(text)] == ["digits"]


def test_it_listens_on_the_loopback_interface_alone(filled_once: Any, start_dashboard: Any) -> None:
    running = start_dashboard(filled_once.path)
    listening = [
        connection.laddr
        for connection in psutil.Process(running.process.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening == [("127.0.0.1", running.port)]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_at_once_although_streams_are_open(
    filled_once: Any, start_dashboard: Any, number: int, code: int
) -> None:
    running = start_dashboard(filled_once.path)
    streams = []
    for path in ("/api/changes", "/api/searches/digits/changes", "/api/changes?since=x"):
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
        connection.request("GET", path, headers={"Authorization": f"Bearer {running.token}"})
        response = connection.getresponse()
        assert response.status == 200
        streams.append((connection, response))
    time.sleep(1.2)
    begun = time.monotonic()
    assert running.end(number) == code
    assert time.monotonic() - begun < 4
    assert running.errors.read_text() == ""
    for connection, response in streams:
        response.close()
        connection.close()


def test_it_starts_without_a_database_and_shows_it_when_it_comes(
    fill_at: Any, tmp_path: Path, start_dashboard: Any
) -> None:
    running = start_dashboard(tmp_path / "later.db")
    assert get(running, "/api/searches") == (200, "[]")
    assert f"paretovit run search.yaml --db {tmp_path / 'later.db'}" in get(running, "/")[1]
    assert not (tmp_path / "later.db").exists()
    assert running.errors.read_text().startswith(f"paretovit: {tmp_path / 'later.db'}: no such database yet")
    assert len(running.errors.read_text().splitlines()) == 1
    fill_at(tmp_path / "later.db").store.close()
    assert len(json.loads(get(running, "/api/searches")[1])) == 1


def test_request_lines_as_they_are_lead_to_no_file(filled_once: Any, start_dashboard: Any) -> None:
    running = start_dashboard(filled_once.path)
    headers = f"Host: 127.0.0.1:{running.port}\r\nAuthorization: Bearer {running.token}\r\nConnection: close\r\n\r\n"
    for target in (
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/../../../../etc/passwd",
        "//etc/passwd",
        "http://127.0.0.1/etc/passwd",
        "/static/%00",
        "/static/\0",
        "/a" * 2000,
    ):
        answer = raw(running, f"GET {target} HTTP/1.1\r\n{headers}")
        assert answer.split(" ")[1] in ("400", "404"), target
        assert "root:" not in answer
        assert "from __future__" not in answer
    assert raw(running, f"GET / HTTP/1.1\r\n{headers}").split(" ")[1] == "200"


def test_no_host_or_two_of_them_are_refused(filled_once: Any, start_dashboard: Any) -> None:
    running = start_dashboard(filled_once.path)
    rest = f"Authorization: Bearer {running.token}\r\nConnection: close\r\n\r\n"
    own = f"Host: 127.0.0.1:{running.port}\r\n"
    for hosts in ("", f"Host: a\r\n{own}", f"{own}Host: a\r\n", own + own):
        answer = raw(running, f"GET / HTTP/1.1\r\n{hosts}{rest}")
        assert answer.split(" ")[1] in ("400", "403"), hosts
        assert "digits" not in answer
    assert raw(running, f"GET / HTTP/1.0\r\n{rest}").split(" ")[1] == "403"


def test_a_mistake_inside_is_a_page_here_a_traceback_there_and_not_the_end(
    filled: Any, start_dashboard: Any
) -> None:
    from sqlalchemy import text

    running = start_dashboard(filled.path)
    filled.store.write(lambda session: session.execute(text("UPDATE search SET config = '{}'")))
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    connection.request("GET", "/searches/digits", headers={"Authorization": f"Bearer {running.token}"})
    response = connection.getresponse()
    page = response.read().decode()
    connection.close()
    assert response.status == 500
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert "KeyError" in page
    assert "Traceback" not in page
    assert get(running, "/api/searches/digits")[0] == 500
    assert get(running, "/api/openapi.json")[0] == 200
    assert running.end() == 0
    assert "Traceback" in running.errors.read_text()


def test_forwarding_headers_change_nothing(filled_once: Any, start_dashboard: Any) -> None:
    running = start_dashboard(filled_once.path)
    forwarded = {
        "X-Forwarded-Host": "127.0.0.1",
        "Forwarded": "host=127.0.0.1",
        "X-Forwarded-For": "127.0.0.1",
    }
    status, _ = get(running, "/", Host="evil.example", **forwarded)
    assert status == 403


def test_every_start_has_a_token_of_its_own_unless_one_is_given(
    filled_once: Any, start_dashboard: Any
) -> None:
    first, second = start_dashboard(filled_once.path), start_dashboard(filled_once.path)
    assert first.token != second.token
    assert len(first.token) >= 40
    assert get(second, "/", Authorization=f"Bearer {first.token}")[0] == 401
    given = start_dashboard(filled_once.path, PARETOVIT_DASHBOARD_TOKEN="a-token-of-my-own-choice")
    assert given.token == "a-token-of-my-own-choice"


def test_a_token_that_is_easy_to_guess_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("secret", "with space in it, long", "ünïcödé-ünïcödé-ünï", "a" * 300):
        monkeypatch.setenv(server.TOKEN_VARIABLE, given)
        with pytest.raises(UsageError, match=server.TOKEN_VARIABLE) as caught:
            server.make_token()
        assert given not in str(caught.value)
    monkeypatch.setenv(server.TOKEN_VARIABLE, "")
    assert server.make_token() != server.make_token()


def test_without_a_port_the_next_free_one_is_taken_and_a_given_one_is_insisted_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = server.listen(0)
    taken = first.getsockname()[1]
    monkeypatch.setattr(server, "DEFAULT_PORT", taken)
    second = server.listen(None)
    assert taken < second.getsockname()[1] < taken + server.TRIED_PORTS
    with pytest.raises(UserError, match=f"port {taken}: .*in use"):
        server.listen(taken)
    monkeypatch.setattr(server, "TRIED_PORTS", 1)
    with pytest.raises(UserError, match=f"ports {taken} to {taken}"):
        server.listen(None)
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--port", "70000"], 2, "70000"),
        (["--port", "-1"], 2, "-1"),
        (["--port", "x"], 2, "x"),
        (["--db", "mysql://somewhere"], 1, "mysql"),
        (["--db", ":memory:"], 1, "memory"),
    ],
)
def test_mistakes_end_it_before_it_listens(
    arguments: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["dashboard", *arguments]) == code
    finally:
        signal.signal(signal.SIGTERM, handler)
    err = capsys.readouterr().err
    assert told in err
    assert len(err.splitlines()) <= 2


def test_a_port_that_is_taken_is_a_line_and_exit_code_1(filled_once: Any) -> None:
    with server.listen(0) as taken:
        port = str(taken.getsockname()[1])
        command = [
            sys.executable,
            "-m",
            "search.cli.main",
            "dashboard",
            "--port",
            port,
            "--db",
            str(filled_once.path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"paretovit: --port: port {port}: ")
    assert len(done.stderr.splitlines()) == 1
