"""Who may look: a token, a checked Host, and no page of another origin. One ASGI middleware around everything.

A browser sends cookies of 127.0.0.1 to every port of it, and resolves any name to it that an attacker's server wants
(DNS rebinding). So a request needs the token, a Host that is this server's own, and, where the browser tells, an
origin that is this server's own, whatever its verb.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")
PUBLIC = "/static/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def cookie_name(port: int) -> str:
    """Cookies know no ports: two dashboards on one machine need two names."""
    return f"paretovit_{port}"


class Guard:
    """token: the secret of this start. port: the one that is listened on."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._port = port
        self._cookie = cookie_name(port)
        self._hosts = {f"{host}:{port}" for host in HOSTS} | (set(HOSTS) if port == 80 else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, _with_headers(send))

    def _answer(self, scope: Scope) -> Response | None:
        """What to say instead of the application; None: let it in."""
        from dashboards.errors import refusal

        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or headers["host"].lower() not in self._hosts:
            return refusal(scope, 403, f"Open this dashboard as http://127.0.0.1:{self._port}/.")
        if not _is_own(headers):
            return refusal(scope, 403, "Pages of other origins may not use this dashboard.")
        if scope["path"].startswith(PUBLIC):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given and scope["method"] == "GET" and self._is_token(given[-1]):
            return self._let_in(scope, [pair for pair in query if pair[0] != "token"])
        if self._has_token(headers):
            return None
        return refusal(scope, 401, "Open the link that paretovit dashboard printed: it holds the token.")

    def _has_token(self, headers: Headers) -> bool:
        kind, _, value = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._is_token(value.strip())
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        return self._cookie in cookies and self._is_token(cookies[self._cookie].value)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token)

    def _let_in(self, scope: Scope, rest: list[tuple[str, str]]) -> Response:
        """Turns the token of a link into a cookie, at the same address without it."""
        target = "/" + quote(scope["path"]).lstrip("/") + (f"?{urlencode(rest)}" if rest else "")
        response = RedirectResponse(target, 303)
        response.set_cookie(self._cookie, self._token.decode(), httponly=True, samesite="strict", path="/")
        return response


def _is_own(headers: Headers) -> bool:
    """Whether the browser, as far as it says, asks for a page of this very origin or for the user."""
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"http://{headers['host'].lower()}":
        return False
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
        await send(message)

    return send_with_headers
