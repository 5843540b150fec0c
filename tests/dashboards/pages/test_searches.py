from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dashboards.pages import searches as page
from search.store.readonly import DatabaseMissing


def names(text: str) -> list[str]:
    return re.findall(r'<h2><a href="[^"]*"><bdi>(.*?)</bdi>', text)


def test_searches_are_listed_the_newest_first(ask_at: Any, fill_at: Any, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        fill_at(tmp_path / "many.db", name=name).store.close()
    dashboard = ask_at(tmp_path / "many.db")
    assert names(dashboard.get("/").text) == ["three", "two", "one"]


def test_many_searches_stand_on_pages(
    ask_at: Any, fill_at: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE", 2)
    for name in ("one", "two", "three"):
        fill_at(tmp_path / "many.db", name=name).store.close()
    dashboard = ask_at(tmp_path / "many.db")
    first, second = dashboard.get("/").text, dashboard.get("/?page=2").text
    assert (names(first), names(second)) == (["three", "two"], ["one"])
    assert 'href="/?page=2"' in first
    assert 'href="/?page=1"' in second
    assert names(dashboard.get("/?page=3").text) == []


def test_a_search_that_has_changed_is_looked_at_again(ask_at: Any, running: Any) -> None:
    dashboard = ask_at(running.path)
    before = dashboard.get("/data").json()
    assert dashboard.get("/data").json() == before
    running.add(23, "finished", 40)
    after = dashboard.get("/data").json()
    assert after["revision"] != before["revision"]
    assert after["parts"]["searches"][0] != before["parts"]["searches"][0]
    assert "10 finished" in after["parts"]["searches"][1]


def test_the_streams_know_the_revision_of_the_list(asked: Any, filled_once: Any) -> None:
    from dashboards.live import look
    from search.store.location import locate
    from search.store.readonly import ReadOnlyStore

    there = look(ReadOnlyStore(locate(str(filled_once.path))))
    assert asked.get("/data").json()["revision"] == there.of(None)
    absent = look(ReadOnlyStore(locate("/nowhere/at/all.db")))
    assert absent.state == DatabaseMissing.__name__


def test_without_a_database_the_page_says_how_to_begin(ask_at: Any, tmp_path: Path) -> None:
    from dashboards.live import look
    from search.store.location import locate
    from search.store.readonly import ReadOnlyStore

    path = tmp_path / "none.db"
    answer = ask_at(path).get("/")
    assert answer.status == 200
    assert "No database yet" in answer.text
    assert str(path) in answer.text
    assert ask_at(path).get("/data").json()["revision"] == look(ReadOnlyStore(locate(str(path)))).of(None)
