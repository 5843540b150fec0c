"""Who may look: a token, a Host of our own, and no page of another origin. One ASGI middleware around everything.

A browser sends the cookies of 127.0.0.1 to every port there, follows any name that an attacker's server makes point
there (DNS rebinding), and lets every page ask. So each request, whatever its verb, needs the token, a Host that is this
server's own, and an origin that is this server's own wherever the browser tells one.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from dashboards.errors import is_api, refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")
PUBLIC = "/static/"  # style sheets and scripts hold no data, and the page that refuses needs them
POLICY = (  # plotly.js writes style elements
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NO_TOKEN = "Open the link that paretovit dashboard printed: it holds the token."
NO_BEARER = "Send the token of the link that paretovit dashboard printed, as Authorization: Bearer TOKEN."
FOREIGN = "A page of another origin asked for this. Open the dashboard from its own address."


def cookie_name(port: int) -> str:
    """Cookies know no ports: two dashboards on one machine need two names."""
    return f"paretovit_{port}"


class Guard:
    """token: the secret of this start, in ASCII. port: the one that is listened on."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = cookie_name(port)
        self._hosts = frozenset(f"{host}:{port}" for host in HOSTS)
        self._wrong_host = (
            f"This dashboard answers as http://127.0.0.1:{port}/ alone; through a tunnel, use the same port at both "
            f"ends: ssh -L {port}:127.0.0.1:{port} HOST"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._answer(scope) or self._app
            await answer(scope, receive, _with_headers(send, public=scope["path"].startswith(PUBLIC)))
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _answer(self, scope: Scope) -> Response | None:
        """What to say instead of the application; None: let it answer."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return refusal(scope, 403, self._wrong_host)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        enters = self._enters(scope, query)
        if not _is_own(headers, hosts[0]):
            if enters and _is_click(headers):
                return self._let_in(scope, query, redirect=False)
            return refusal(scope, 403, FOREIGN)
        if scope["path"].startswith(PUBLIC):
            return None
        if enters:
            return self._let_in(scope, query, redirect=True)
        if self._has_bearer(headers):
            return None
        if self._has_cookie(headers):
            # A browser tells the origin of whatever is no GET; what comes with its cookie and without that is no page
            # of ours.
            is_read = scope["method"] in ("GET", "HEAD")
            return None if is_read or "origin" in headers else refusal(scope, 403, FOREIGN)
        response = refusal(scope, 401, NO_BEARER if is_api(scope) else NO_TOKEN)
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    def _enters(self, scope: Scope, query: list[tuple[str, str]]) -> bool:
        """Whether this opens a page by a link that holds the token."""
        given = [value for name, value in query if name == "token"]
        return scope["method"] == "GET" and not is_api(scope) and len(given) == 1 and self._is_token(given[0])

    def _has_bearer(self, headers: Headers) -> bool:
        kind, _, value = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self._is_token(value.strip())

    def _has_cookie(self, headers: Headers) -> bool:
        if headers.get("authorization", "").lower().startswith("bearer"):
            return False
        return self._is_token(cookie_parser(headers.get("cookie", "")).get(self._cookie, ""))

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())

    def _let_in(self, scope: Scope, query: list[tuple[str, str]], *, redirect: bool) -> Response:
        """Turns the token of a link into a cookie, at the same address without it.

        A redirect still counts as coming from where the link was, and the browser would hold the cookie back, so a
        link on another page (a terminal in a browser) gets an empty page that goes on by itself.
        """
        rest = [pair for pair in query if pair[0] != "token"]
        target = "/" + quote(scope["path"]).lstrip("/") + (f"?{urlencode(rest)}" if rest else "")
        response = (
            RedirectResponse(target, 303) if redirect else Response(headers={"Refresh": f"0; url={target}"})
        )
        response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
        return response


def _is_own(headers: Headers, host: str) -> bool:
    """Whether, as far as the browser says, a page of this very origin asks, or the user."""
    origins = headers.getlist("origin")
    if any(origin.lower() != f"http://{host.lower()}" for origin in origins):
        return False
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _is_click(headers: Headers) -> bool:
    """Whether the browser says that it opens a page in a window of its own, as after a click on a link."""
    kind = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return kind == ("navigate", "document") and "origin" not in headers


def _with_headers(send: Send, *, public: bool) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if not public or message["status"] >= 400:
                headers["Cache-Control"] = "no-store"
        await send(message)

    return send_with_headers
