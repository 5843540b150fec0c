"""`serve`: the dashboard with its REST API and a runner that works the queue off, each in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from enum import StrEnum
from typing import Annotated

import typer

from search.cli.options import Database
from search.supervisor import SUPERVISED


class Part(StrEnum):
    DASHBOARD = "dashboard"
    RUNNER = "runner"


def serve(
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any free one.  [8770 or next]"),
    ] = None,
    only: Annotated[
        Part | None, typer.Option("--only", help="Only this of the two, in this very process.")
    ] = None,
    db: Database = None,
) -> int:
    """Work the queue off, and show searches in a browser that can submit, pause and stop them."""
    if os.environ.get(SUPERVISED) and only is not None:
        threading.Thread(target=_end_with_supervisor, daemon=True).start()
    if only is Part.RUNNER:
        return _run(db)
    if only is Part.DASHBOARD:
        _show(db, port)
        return 0
    return _both(db, port)


def _end_with_supervisor() -> None:
    """Ends this process when the one that has started it is gone, however that went: its end of the pipe is shut."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _say(text: str) -> None:
    print(text, flush=True)


def _warn(text: str) -> None:
    print(f"paretovit: {text}", file=sys.stderr, flush=True)


def _run(db: str | None) -> int:
    from search.cli.progress import Plain
    from search.runner import Runner
    from search.store.session import open_store

    store = open_store(db, create=True)
    runner = Runner(store, Plain().line)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: runner.end())
    _say("runner ready")
    try:
        runner.run()
    finally:
        store.close()
    return 0


def _show(db: str | None, port: int | None) -> None:
    from dashboards.server import serve

    serve(db, port, lambda url: _say(f"ready {url}"), _warn, may_write=True)


def _both(db: str | None, port: int | None) -> int:
    """Both, looked after from here."""
    from dashboards.server import TOKEN_VARIABLE, make_token
    from search.store.location import VARIABLE, locate
    from search.store.session import open_store
    from search.supervisor import Child, Supervisor

    open_store(db, create=True).close()  # what is wrong with it is told here, once
    location = locate(db)
    variables = {VARIABLE: str(location.path or location.conninfo)}
    named = (
        [] if db is None or location.path is None else ["--db", db]
    )  # a password is nobody else's business
    found: list[str] = [] if port is None else ["--port", str(port)]

    def heard(line: str) -> None:
        ready = re.fullmatch(r"ready http://127\.0\.0\.1:(\d+)/.*", line)
        if ready is not None and not told:
            told.append(line)
            found[:] = ["--port", ready[1]]  # where it is looked for when it has to be started again
            _say(line)

    told: list[str] = []
    dashboard = Child(
        "dashboard",
        lambda: ["serve", "--only", "dashboard", *found, *named],
        variables | {TOKEN_VARIABLE: make_token()},
        heard,
    )
    runner = Child("runner", lambda: ["serve", "--only", "runner", *named], variables)
    return Supervisor([runner, dashboard], _warn).run()
