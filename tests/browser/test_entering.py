"""How a browser gets in, and how pages of other origins do not."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def other_origin() -> Iterator[Callable[[str], str]]:
    """Serves a page of another origin, at the same address and another port; returns its URL."""
    page = b""

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def serve(html: str) -> str:
        nonlocal page
        page = html.encode()
        return f"http://127.0.0.1:{server.server_port}/"

    yield serve
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_printed_link_opens_the_dashboard_and_leaves_no_token_in_the_address(
    visit: Any, site: Any
) -> None:
    page = visit.page
    page.goto(site.link)
    assert page.url == f"{site.root}/"
    page.get_by_role("link", name="digits").wait_for()
    cookie = page.context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_link_in_a_terminal_that_is_itself_a_page_opens_it_too(
    visit: Any, site: Any, other_origin: Any, host: str
) -> None:
    page = visit.page
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    page.goto(other_origin(f'<a href="{site.link}">ready</a>').replace("127.0.0.1", host))
    visit.faults.clear()  # a request to `localhost` is this test's own
    page.get_by_role("link", name="ready").click()
    page.wait_for_url(f"{site.root}/")
    page.get_by_role("link", name="digits").wait_for()
    assert page.evaluate("fetch('/api/searches').then((answer) => answer.status)") == 200


ATTEMPTS = """
(root) => Promise.all([
  fetch(root + "/api/searches", {credentials: "include"}).then((a) => a.text(), () => "refused"),
  fetch(root + "/api/searches", {credentials: "include", mode: "no-cors"}).then((a) => a.type, () => "refused"),
  fetch(root + "/api/searches", {method: "POST", credentials: "include"}).then((a) => a.text(), () => "refused"),
  new Promise((done) => {
    const events = new EventSource(root + "/api/changes?since=x", {withCredentials: true});
    events.addEventListener("changed", (event) => { events.close(); done(event.data); });
    events.onerror = () => { events.close(); done("refused"); };
  }),
  new Promise((done) => {
    const script = document.createElement("script");
    script.src = root + "/api/searches";
    script.onload = () => done("loaded");
    script.onerror = () => done("refused");
    document.head.append(script);
  }),
])
"""


def test_a_page_of_another_port_gets_nothing_although_the_browser_has_the_cookie(
    new_visit: Any, site: Any, other_origin: Any
) -> None:
    """Ports do not part sites: a SameSite cookie alone would be sent."""
    visit = new_visit()
    page = visit.page
    page.goto(site.link)
    page.goto("about:blank")
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    statuses: list[int] = []
    page.on(
        "response",
        lambda answer: statuses.append(answer.status) if answer.url.startswith(site.root) else None,
    )
    page.goto(other_origin(f'<iframe src="{site.root}/"></iframe><p>other</p>'))
    assert page.evaluate(ATTEMPTS, site.root) == ["refused"] * 5
    assert page.frames[1].locator("body").inner_text(timeout=5000).count("digits") == 0
    assert set(statuses) == {403}
    visit.faults.clear()  # the browser says in its console that it refused
