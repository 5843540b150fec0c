"""Listening on the loopback interface, and nowhere else."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from dashboards.app import Dashboard, create_app
from search.errors import UsageError, UserError
from search.store.location import locate

DEFAULT_PORT = 8770
TRIED_PORTS = 20
TOKEN_VARIABLE = "PARETOVIT_DASHBOARD_TOKEN"


def serve(
    db: str | None,
    port: int | None,
    ready: Callable[[str], None],
    warn: Callable[[str], None],
    *,
    may_write: bool = False,
) -> None:
    """Serves the dashboard until a signal ends it; calls `ready` with the URL to open once it answers.

    db: path or URL, else PARETOVIT_DB, else ./paretovit.db; `warn` is called when it cannot be read yet. port: 0 for
    any free one; None for the first free one from 8770 on. may_write: whether searches can be submitted, paused and
    deleted through it. SIGTERM ends it with exit code 0, SIGINT with
    KeyboardInterrupt. Raises UserError for a port that is taken, and for a `db` that names no database.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    location, token = locate(db), make_token()
    with contextlib.closing(listen(port)) as listener:
        bound = listener.getsockname()[1]
        app = create_app(location, token, bound, may_write=may_write)
        try:
            with app.state.store.read():
                pass
        except UserError as error:
            warn(str(error))
        Server(app, lambda: ready(f"http://127.0.0.1:{bound}/?token={token}")).run(sockets=[listener])


def make_token() -> str:
    """A new secret, or the one of PARETOVIT_DASHBOARD_TOKEN. Raises UsageError for one that is easy to guess."""
    given = os.environ.get(TOKEN_VARIABLE)
    if not given:
        return secrets.token_urlsafe(32)
    if not re.fullmatch(r"[A-Za-z0-9_-]{16,200}", given):
        raise UsageError(
            f"{TOKEN_VARIABLE}: needs 16 to 200 letters, digits, dashes or underscores; leave it unset for a new token "
            "with every start"
        )
    return given


def listen(port: int | None) -> socket.socket:
    """A socket that is bound to the loopback interface. Raises UserError where the port is not to be had."""
    wanted = range(DEFAULT_PORT, DEFAULT_PORT + TRIED_PORTS) if port is None else range(port, port + 1)
    reason: str | None = None
    for number in wanted:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(("127.0.0.1", number))
            found.listen()
        except OSError as error:
            found.close()
            reason = error.strerror
        else:
            return found
    ports = f"port {port}" if port is not None else f"ports {wanted[0]} to {wanted[-1]}"
    raise UserError(f"--port: {ports}: {reason}; give another one, or 0 for any that is free")


class Server(uvicorn.Server):
    """uvicorn, which says when it answers and ends event streams rather than wait for them."""

    def __init__(self, app: Dashboard, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=1,
            )
        )
        self._changes = app.state.changes
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._changes.close()
        await super().shutdown(sockets)
