from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import dashboards
from dashboards import assets

HERE = Path(dashboards.__file__ or "").parent
PAGES = ("/", "/searches/digits", "/searches/digits/candidates/3")

TRAVERSALS = [
    "..",
    "../",
    "../../",
    "../app.py",
    "../../pyproject.toml",
    "../" * 12 + "etc/passwd",
    "%2e%2e/app.py",
    "%2e%2e%2fapp.py",
    "%2E%2E%2F%2E%2E%2Fpyproject.toml",
    "..%2fapp.py",
    "..%2f" * 12 + "etc%2fpasswd",
    "..%5capp.py",
    "..%5c..%5cpyproject.toml",
    "..\\app.py",
    "....//app.py",
    "..;/app.py",
    ".%2e/app.py",
    "%252e%252e%252fapp.py",
    "%c0%ae%c0%ae/app.py",
    "%uff0e%uff0e/app.py",
    "．．／app.py",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "//etc/passwd",
    "/proc/self/environ",
    "file:///etc/passwd",
    "C:%5cWindows%5cwin.ini",
    "report.js%00.css",
    "%00",
    "look.css%00",
    "%0d%0aSet-Cookie:%20a=b",
    "a" * 5000,
    "é" * 300,
    "%ff%fe",
    "%",
    "~root",
    "__init__.py",
    "templates/page.html",
    "../templates/page.html",
    ".",
    "*",
    "' OR 1=1 --",
    "digits'%20OR%20'1'='1",
    "{name}",
    "%25s",
]
FROM_FILES = (
    b"root:",
    b"from __future__",
    b"[project]",
    b"{% extends",
    b"SQLite format",
    b"PATH=",
    b'<!DOCTYPE html>\n<html lang="en">\n{%',
)


@pytest.mark.parametrize("payload", TRAVERSALS)
def test_no_path_leads_to_a_file_or_search_that_is_not_offered(asked: Any, payload: str) -> None:
    digest = assets.url("report.js").split("/")[2]
    prefixes = ["/", "/static/", f"/static/{digest}/", "/static/plotly/", "/searches/", "/api/searches/"]
    prefixes += ["/searches/digits/candidates/", "/api/searches/digits/candidates/"]
    for prefix in prefixes:
        for suffix in ("", "/candidates/1"):
            target = (prefix + payload + suffix).replace(" ", "%20")
            answer = asked.get(quote(target, safe="/%:;.~*{}'=\\"))
            assert answer.status in (404, 422) or (payload, answer.status) == (".", 200), target
            for content in FROM_FILES:
                assert content not in answer.body, target
            assert "set-cookie" not in answer.headers


def test_the_static_route_offers_the_files_of_its_folder_and_no_others(asked: Any) -> None:
    offered = [path for path in assets.FOLDER.iterdir() if path.is_file()]
    assert offered
    for path in offered:
        answer = asked.get(assets.url(path.name), {"authorization": None})
        assert answer.status == 200
        assert answer.body == path.read_bytes()
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    digest = assets.url("report.js").split("/")[2]
    assert asked.get(f"/static/{digest}/none.js").status == 404
    assert asked.get(f"/static/{'0' * 16}/report.js").status == 404


def test_a_link_in_the_static_folder_that_leads_out_of_it_is_not_offered(
    tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "own.css").write_text("a {}")
    (folder / "link.css").symlink_to(tmp_path / "secret")
    (folder / "folder.css").mkdir()
    assert set(assets.files(folder)) == {"own.css"}


def test_plotly_is_the_one_of_the_package_under_an_address_that_names_its_version(asked: Any) -> None:
    from importlib.metadata import version

    from plotly.offline import get_plotlyjs

    assert version("plotly") in assets.PLOTLY_URL
    answer = asked.get(assets.PLOTLY_URL)
    assert answer.body.decode() == get_plotlyjs()
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]


def test_pages_show_what_the_database_holds(asked: Any) -> None:
    for page in PAGES:
        answer = asked.get(page)
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "digits" in answer.text


def test_a_search_and_a_candidate_that_are_not_there_are_told_with_what_there_is(asked: Any) -> None:
    answer = asked.get("/searches/digit")
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "did you mean" in answer.text
    assert asked.get("/searches/digits/candidates/99").status == 404
    assert asked.get("/searches/digits/candidates/x").status == 422
    assert asked.get("/nothing").status == 404


def test_hostile_words_are_text_on_every_page(hostile: Any, ask_at: Any) -> None:
    asked = ask_at(hostile.path)
    name = quote(hostile.name, safe="")
    for page in (
        "/",
        f"/searches/{name}",
        f"/searches/{name}/candidates/1",
        f"/searches/{name}/candidates/-1",
    ):
        answer = asked.get(page)
        assert answer.status == 200, page
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text


@pytest.mark.parametrize(
    "name",
    ["a b", "ünï", "日本", "a+b", "a%2Fb", "a/b", "a?b", "a#b", "a&b;c", "candidates", "a/front", "-1"],
)
def test_a_search_of_any_name_is_found_under_it(fill_at: Any, tmp_path: Path, ask_at: Any, name: str) -> None:
    from sqlalchemy import update

    from search.store.models import Search

    made = fill_at(tmp_path / "a.db")
    made.store.write(lambda session: session.execute(update(Search).values(name=name)))
    made.store.close()
    asked = ask_at(made.path)
    written = quote(name, safe="")
    assert asked.get(f"/searches/{written}").status == 200
    assert asked.get(f"/searches/{written}/candidates/1").status == 200
    assert asked.get(f"/api/searches/{written}/front").json()["search"] == name
    assert asked.get(f"/api/searches/{written}/candidates/1").json()["search"] == name


def test_without_a_database_the_list_says_how_to_begin_and_finds_it_when_it_comes(
    filled: Any, ask_at: Any
) -> None:
    filled.store.close()
    away = filled.path.with_name("away.db")
    filled.path.rename(away)
    asked = ask_at(filled.path)
    answer = asked.get("/")
    assert answer.status == 200
    assert "paretovit run search.yaml" in answer.text
    assert asked.get("/searches/digits").status == 503
    assert not filled.path.exists()
    away.rename(filled.path)
    assert "digits" in asked.get("/").text
    assert asked.get("/searches/digits").status == 200
    filled.path.rename(away)
    assert "digits" not in asked.get("/").text


def test_a_database_that_cannot_be_read_is_told_on_a_page_and_in_json(
    filled: Any, ask_at: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("search.store.readonly.PATIENCE_SECONDS", 0.1)
    wrong = tmp_path / "wrong.db"
    wrong.write_bytes(b"no database" * 1000)
    filled.store.close()
    holder = sqlite3.connect(filled.path, isolation_level=None)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    for path, told in ((wrong, "not a database"), (filled.path, "locked"), (tmp_path, "is a folder")):
        asked = ask_at(path)
        for page in PAGES:
            answer = asked.get(page)
            assert answer.status == 503, page
            assert told in answer.text
            assert "Traceback" not in answer.text
        assert told in asked.get("/api/searches").json()["detail"]
    holder.close()
    assert ask_at(filled.path).get("/").status == 200


def test_rows_that_nobody_can_understand_are_an_error_and_not_the_end(filled: Any, ask_at: Any) -> None:
    from sqlalchemy import text

    asked = ask_at(filled.path)
    filled.store.write(lambda session: session.execute(text("UPDATE search SET state = 'asleep'")))
    with pytest.raises(ValueError):  # goes on to the server, which prints it
        asked.get("/searches/digits")
    filled.store.write(lambda session: session.execute(text("DELETE FROM search")))
    assert asked.get("/").status == 200


def test_a_damaged_row_is_told_on_a_page_and_in_json(filled: Any, ask_at: Any) -> None:
    from sqlalchemy import text

    asked = ask_at(filled.path)
    told = "table candidate, row 10: spec is damaged"
    filled.store.write(lambda session: session.execute(text("UPDATE candidate SET spec = '[' WHERE id = 10")))
    for page in ("/", "/searches/digits"):
        assert asked.get(page).status == 503
        assert told in asked.get(page).text
    assert told in asked.get("/api/searches/digits/front").json()["detail"]


def test_visiting_everything_changes_nothing_in_the_database(filled: Any, ask_at: Any) -> None:
    filled.store.close()
    before, modified = filled.path.read_bytes(), filled.path.stat().st_mtime_ns
    asked = ask_at(filled.path)
    for route in asked.routes():
        asked.get(route)
    assert filled.path.read_bytes() == before
    assert filled.path.stat().st_mtime_ns == modified


_VISIT = """
import asyncio, sys
from dashboards.app import create_app
from search.store.location import locate
app = create_app(locate(sys.argv[1]), "token", 1)
found = []
async def visit(path):
    parts = iter([{"type": "http.request", "body": b"", "more_body": False}])
    async def receive(): return next(parts, None) or await asyncio.sleep(60)
    async def send(message): found.append(message.get("status"))
    headers = [(b"host", b"127.0.0.1:1"), (b"authorization", b"Bearer token")]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers, "root_path": ""}
    await app(scope, receive, send)
for path in sys.argv[2:]:
    asyncio.run(visit(path))
print(found.count(200), sorted({"torch", "torchvision", "timm", "ray", "optuna", "sqlalchemy"} & set(sys.modules)))
"""


def test_pages_and_api_load_no_torch_ray_or_optuna(filled_once: Any) -> None:
    paths = [*PAGES, "/api/searches", "/api/searches/digits/front", "/api/openapi.json", assets.PLOTLY_URL]
    done = subprocess.run(
        [sys.executable, "-c", _VISIT, str(filled_once.path), *paths],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == f"{len(paths)} []\n", done.stderr
