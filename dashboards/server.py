"""Listening on the loopback interface, and nowhere else."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable

import uvicorn

from dashboards.app import create_app
from search.errors import UserError

DEFAULT_PORT = 8770
TRIED_PORTS = 20


def serve(db: str | None, port: int | None, ready: Callable[[str], None]) -> None:
    """Serves the dashboard until a signal ends it; calls `ready` with the URL to open once it answers.

    port: 0 for any free one; None for the first free one from 8770 on. Raises UserError when it is taken.
    """
    listener = listen(port)
    with contextlib.closing(listener):
        bound = listener.getsockname()[1]
        token = secrets.token_urlsafe(32)
        app = create_app(db, token, bound)
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
        _Server(config, lambda: ready(f"http://127.0.0.1:{bound}/?token={token}")).run(sockets=[listener])


def listen(port: int | None) -> socket.socket:
    """A socket that is bound to the loopback interface."""
    wanted = range(DEFAULT_PORT, DEFAULT_PORT + TRIED_PORTS) if port is None else (port,)
    for number in wanted:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(("127.0.0.1", number))
        except OSError:
            found.close()
        else:
            return found
    taken = f"port {port} is" if port is not None else f"ports {wanted[0]} to {wanted[-1]} are"
    raise UserError(f"--port: {taken} taken or not allowed; give another, or 0 for any free one")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()
