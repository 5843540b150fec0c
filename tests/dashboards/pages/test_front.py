from __future__ import annotations

import json
import re
from typing import Any

from search.front import front_view
from search.store.read.searches import search_by_name


def test_the_open_page_takes_over_what_a_new_one_would_show(asked: Any) -> None:
    page, update = asked.get("/searches/digits").text, asked.get("/searches/digits/data").json()
    for name, (version, html) in update["parts"].items():
        assert f'<div id="{name}" data-version="{version}">{html}</div>' in page
    for _, version, html in update["rows"]:
        assert f'data-version="{version}"' in html
        assert html in page
    embedded = re.search(r'id="page-data">(.*?)</script>', page)
    assert embedded is not None
    assert json.loads(embedded[1]) == update["chart"]
    assert f'data-revision="{update["revision"]}"' in page


def test_its_numbers_are_those_of_the_front_command(asked: Any, filled: Any) -> None:
    with filled.store.read() as reader:
        shown = front_view(reader, search_by_name(reader, filled.name)).to_dict(all=True)
    points = asked.get("/searches/digits/data").json()["chart"]["points"]
    for one in shown["candidates"]:
        point = points[f"c{one['candidate']}"]
        assert (point["values"], point["intervals"]) == (one["values"], one["intervals"])
        assert point["group"] == one["standing"]
    for one in shown["baselines"]:
        assert points[f"b{-one['candidate']}"]["values"] == one["values"]


def test_its_revision_is_the_one_that_the_streams_tell(asked: Any, filled_once: Any) -> None:
    from search.store.read.revision import revisions
    from search.store.session import open_store

    store = open_store(str(filled_once.path), create=False)
    with store.read() as reader:
        known = revisions(reader)["digits"]
    store.close()
    assert asked.get("/searches/digits/data").json()["revision"] == known
    assert asked.get("/searches/digits/candidates/3/data").json()["revision"] == known


def test_only_a_row_that_changed_has_another_version(ask_at: Any, running: Any) -> None:
    dashboard = ask_at(running.path)
    before = {key: version for key, version, _ in dashboard.get("/searches/digits/data").json()["rows"]}
    running.add(23, "stopped", 20)
    after = {key: version for key, version, _ in dashboard.get("/searches/digits/data").json()["rows"]}
    assert set(after) - set(before) == {"c23"}
    assert {key: after[key] for key in before} == before


def test_a_search_that_runs_has_not_ended(ask_at: Any, running: Any, asked: Any) -> None:
    assert ask_at(running.path).get("/searches/digits/data").json()["ended"] is False
    assert asked.get("/searches/digits/data").json()["ended"] is True


def test_no_script_stands_in_the_page_itself(asked: Any) -> None:
    page = asked.get("/searches/digits").text
    for attributes, body in re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL):
        assert 'src="/static/' in attributes or 'type="application/json"' in attributes
        assert not body or 'type="application/json"' in attributes
    assert not re.search(r"<[^>]*\son\w+=", page)
    assert not re.search(r"<[^>]*\sstyle=", page)
