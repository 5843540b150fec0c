from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest

TOKEN = "tests-token-that-nobody-guesses"
PORT = 8770
COOKIE = f"paretovit_{PORT}={TOKEN}"
VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
NO_TOKEN = {"authorization": None}


def data_routes(asked: Any) -> list[str]:
    """Every route but those of files that hold no data. There are pages, the API and its streams among them."""
    found = [route for route in asked.routes() if not route.startswith("/static/")]
    assert {"/", "/searches/digits", "/api/searches", "/api/changes", "/api/openapi.json"} <= set(found)
    assert len(found) >= 13
    return found


def holds_data(text: str) -> bool:
    return re.search(r"digits|swin_model|vit_model|resnet|finished|latency|openapi", text) is not None


def test_without_a_token_no_route_tells_anything(asked: Any) -> None:
    for route in data_routes(asked):
        for verb in VERBS:
            answer = asked.get(route, NO_TOKEN, verb)
            assert answer.status == 401, (verb, route)
            assert not holds_data(answer.text), (verb, route)
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": TOKEN},
        {"authorization": "Bearer \xff\xfe"},
        {"authorization": None, "cookie": f"paretovit_{PORT}="},
        {"authorization": None, "cookie": f"paretovit_{PORT + 1}={TOKEN}"},
        {"authorization": None, "cookie": f"paretovit={TOKEN}"},
        {"authorization": None, "cookie": ";;=;" * 100},
    ],
)
def test_a_wrong_token_is_none(asked: Any, headers: dict[str, str | None]) -> None:
    for route in data_routes(asked):
        assert asked.get(route, headers).status == 401, route


def test_the_page_without_a_token_says_where_to_find_it_and_the_api_says_it_in_json(asked: Any) -> None:
    page = asked.get("/", NO_TOKEN)
    assert page.headers["content-type"].startswith("text/html")
    assert "paretovit dashboard" in page.text
    assert "token" in asked.get("/api/searches", NO_TOKEN).json()["detail"]


def test_the_token_opens_every_route(asked: Any) -> None:
    for route in data_routes(asked):
        assert asked.get(route).status == 200, route
        assert asked.get(route, {"authorization": None, "cookie": f"a=b; {COOKIE}; c={{}}"}).status == 200, (
            route
        )


def test_a_link_with_the_token_becomes_a_cookie_and_the_same_address_without_it(asked: Any) -> None:
    answer = asked.get(f"/searches/digits?x=latency_ms&token={TOKEN}&y=a%20b", NO_TOKEN)
    assert answer.status == 303
    assert answer.headers["location"] == "/searches/digits?x=latency_ms&y=a+b"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(COOKIE + ";")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert not holds_data(answer.text)
    again = asked.get(answer.headers["location"], {"authorization": None, "cookie": cookie.partition(";")[0]})
    assert again.status == 200


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/%2Fevil.example/", "/%5Cevil.example", "/http://evil.example"]
)
def test_the_address_after_the_token_never_leads_elsewhere(asked: Any, path: str) -> None:
    answer = asked.get(f"{path}?token={TOKEN}", NO_TOKEN)
    target = urlsplit(answer.headers["location"])
    assert (target.scheme, target.netloc) == ("", "")
    assert target.path.startswith("/")
    assert "\\" not in target.path


@pytest.mark.parametrize(
    "query", ["token=", "token=x", f"token={TOKEN}x", f"token=x&token={TOKEN}", "token", f"Token={TOKEN}"]
)
def test_a_link_with_another_token_opens_nothing(asked: Any, query: str) -> None:
    answer = asked.get(f"/?{query}", NO_TOKEN)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_the_api_takes_no_token_from_the_address(asked: Any) -> None:
    answer = asked.get(f"/api/searches?token={TOKEN}", NO_TOKEN)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert asked.get(f"/?token={TOKEN}", NO_TOKEN, "POST").status == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1:{PORT}.evil.example",
        f"127.0.0.1:{PORT}@evil.example",
        f"localhost.evil.example:{PORT}",
        f"localhost.:{PORT}",
        f"127.0.0.2:{PORT}",
        f"2130706433:{PORT}",
        f"[::ffff:127.0.0.1]:{PORT}",
        f"0.0.0.0:{PORT}",
        f"127.0.0.1:0{PORT}",
        "",
        None,
    ],
)
def test_a_foreign_host_is_refused_whatever_it_brings(asked: Any, host: str | None) -> None:
    for route in asked.routes():
        for verb in VERBS:
            for token in ({}, {"cookie": COOKIE}):
                answer = asked.get(route, {"host": host, **token}, verb)
                assert answer.status == 403, (verb, route)
                assert not holds_data(answer.text)
    assert asked.get(f"/?token={TOKEN}", {"host": host}).status == 403


@pytest.mark.parametrize(
    "host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LocalHost:{PORT}", f"[::1]:{PORT}"]
)
def test_its_own_names_are_no_foreign_hosts(asked: Any, host: str) -> None:
    assert asked.get("/", {"host": host}).status == 200
    assert asked.get("/", {"host": host, "origin": f"http://{host}"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"http://localhost:{PORT}"},
        {"origin": "http://127.0.0.1"},
        {"origin": f"http://127.0.0.1:{PORT}.evil.example"},
        {"origin": f"http://127.0.0.1:{PORT}/"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "nonsense"},
        {"sec-fetch-site": "cross-site", "origin": f"http://127.0.0.1:{PORT}"},
    ],
)
def test_a_foreign_origin_is_refused_on_every_route_and_verb_with_a_valid_token(
    asked: Any, headers: dict[str, str]
) -> None:
    for route in asked.routes():
        for verb in VERBS:
            for token in ({}, {"cookie": COOKIE}):
                answer = asked.get(route, headers | token, verb)
                assert answer.status == 403, (verb, route)
                assert not holds_data(answer.text)
                assert "access-control-allow-origin" not in answer.headers


def test_a_link_on_another_page_opens_the_dashboard_only_with_the_token_and_as_a_page(asked: Any) -> None:
    click = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    click |= NO_TOKEN
    answer = asked.get(f"/?token={TOKEN}", click)
    assert answer.status == 200
    assert answer.body == b""
    assert answer.headers["refresh"] == "0; url=/"
    assert answer.headers["set-cookie"].startswith(COOKIE)
    assert asked.get("/", click | {"cookie": COOKIE}).status == 403
    assert asked.get("/?token=x", click).status == 403
    assert asked.get(f"/?token={TOKEN}", click | {"sec-fetch-mode": "no-cors"}).status == 403
    assert asked.get(f"/?token={TOKEN}", click | {"sec-fetch-dest": "iframe"}).status == 403
    assert asked.get(f"/?token={TOKEN}", click | {"origin": "http://evil.example"}).status == 403
    assert asked.get(f"/api/searches?token={TOKEN}", click).status == 403


def test_two_dashboards_on_one_machine_keep_their_cookies_apart(filled_once: Any, ask_at: Any) -> None:
    other = ask_at(filled_once.path, PORT + 1)
    answer = other.get(f"/?token={TOKEN}", {"host": f"127.0.0.1:{PORT + 1}"})
    assert not answer.headers["set-cookie"].startswith(f"paretovit_{PORT}=")


def test_every_answer_carries_the_headers_that_browsers_need(asked: Any) -> None:
    answers = [asked.get(route) for route in asked.routes()]
    answers += [asked.get("/", NO_TOKEN), asked.get("/", {"host": "evil.example"}), asked.get("/nothing")]
    answers += [asked.get("/", method="POST"), asked.get("/api/searches/digits/candidates/x")]
    answers += [asked.get(f"/?token={TOKEN}"), asked.get("/static/0/none.js")]
    for answer in answers:
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == "'self'"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert "server" not in answer.headers


def test_what_holds_data_is_stored_nowhere(asked: Any) -> None:
    for route in data_routes(asked):
        assert asked.get(route).headers["cache-control"] == "no-store", route


def test_a_websocket_is_closed(asked: Any) -> None:
    sent = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/", "headers": [], "query_string": b""}
    asked.runner.run(asked.app(scope, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
