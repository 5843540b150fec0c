from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dashboards.report import SCRIPTS, write_report
from search.errors import UserError
from search.front import front_view
from search.store.read.searches import search_by_name


def written(filled: Any, tmp_path: Path) -> str:
    with filled.store.read() as reader:
        path = write_report(reader, filled.name, tmp_path / "out" / "report.html")
    return path.read_text(encoding="utf-8")


class Page(HTMLParser):
    """Elements, scripts and visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.rows: list[dict[str, str | None]] = []
        self.text: list[str] = []
        self._script: dict[str, str | None] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._script = dict(attrs)
            self.scripts.append((self._script, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        else:
            self.text.append(data)

    def having(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [
            attrs
            for name, attrs in self.elements
            if name == tag and all(attrs.get(key.replace("_", "-")) == value for key, value in wanted.items())
        ]

    @property
    def data(self) -> dict[str, Any]:
        return next(json.loads(text) for attrs, text in self.scripts if attrs.get("id") == "front-data")


@pytest.fixture
def page(filled: Any, tmp_path: Path) -> Page:
    return Page(written(filled, tmp_path))


def test_every_candidate_and_baseline_is_a_row_and_a_point(page: Page) -> None:
    keys = {attrs["data-key"] for attrs in page.having("tr") if "data-key" in attrs}
    assert keys == set(page.data["points"]) == {"b1", *(f"c{number}" for number in range(1, 23))}


def test_its_points_and_values_are_those_of_the_front_command(filled: Any, page: Page) -> None:
    with filled.store.read() as reader:
        shown = front_view(reader, search_by_name(reader, filled.name)).to_dict(all=True)
    points = page.data["points"]
    assert {key for key, point in points.items() if point["group"] == "front"} == {
        f"c{point['candidate']}" for point in shown["front"]
    }
    for one in shown["candidates"]:
        assert points[f"c{one['candidate']}"]["values"] == one["values"]
        assert points[f"c{one['candidate']}"]["intervals"] == one["intervals"]
        assert points[f"c{one['candidate']}"]["group"] == one["standing"]


def test_both_themes_hold_the_same_figures(page: Page) -> None:
    light, dark = (page.data["looks"][theme] for theme in ("light", "dark"))
    assert [trace["meta"] for trace in light["front"]["data"]] == [t["meta"] for t in dark["front"]["data"]]
    assert [trace["y"] for trace in light["curves"]["data"]] == [t["y"] for t in dark["curves"]["data"]]


def test_either_axis_offers_every_quantity_that_is_known(page: Page) -> None:
    assert list(page.data["axes"])[:2] == ["accuracy", "latency_ms"]
    offered = [attrs["value"] for attrs in page.having("option")]
    for name in page.data["axes"]:
        assert offered.count(name) == 2


def test_groups_that_are_there_can_be_hidden_by_a_labelled_checkbox(page: Page) -> None:
    boxes = {attrs["value"] for attrs in page.having("input", type="checkbox") if attrs.get("value")}
    there = {point["group"] for point in page.data["points"].values()}
    assert there <= boxes
    shown = [attrs for attrs in page.having("label") if "title" in attrs and "hidden" not in attrs]
    assert len(shown) == len(there)


def test_an_accuracy_of_a_shorter_training_says_so(page: Page) -> None:
    assert "".join(page.text).count("after 4 of 12 epochs") == 5


def test_conditions_settings_remarks_and_events_are_told(page: Page) -> None:
    text = " ".join("".join(page.text).split())
    for told in (
        "Example CPU",
        "95% Wilson interval",
        "#3: contended",
        "max_candidates",
        "loss is not finite",
    ):
        assert told in text


def test_it_loads_nothing(filled: Any, tmp_path: Path) -> None:
    page = Page(written(filled, tmp_path))
    for _, attrs in page.elements:
        for key in ("src", "href", "srcset", "action", "data"):
            assert (attrs.get(key) or "#").startswith("#")
    assert page.having("link") == []


def test_only_the_embedded_scripts_may_run(page: Page) -> None:
    (policy,) = [
        a["content"] or "" for a in page.having("meta") if a.get("http-equiv") == "Content-Security-Policy"
    ]
    runnable = [text for attrs, text in page.scripts if attrs.get("type") != "application/json"]
    hashes = {
        "'sha256-" + base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() + "'" for t in runnable
    }
    allowed = re.search(r"script-src ([^;]*);", policy)
    assert allowed is not None
    assert set(allowed[1].split()) == hashes
    assert len(runnable) == len(hashes) == len(SCRIPTS) + 1
    assert "default-src 'none'" in policy


def test_plotly_is_embedded_once(filled: Any, tmp_path: Path) -> None:
    assert written(filled, tmp_path).count("* plotly.js v") == 1


def test_markup_in_names_classes_arguments_and_reasons_is_text(
    hostile: Any, filled: Any, tmp_path: Path
) -> None:
    evil, plain = Page(written(hostile, tmp_path / "evil")), Page(written(filled, tmp_path / "plain"))
    assert len(evil.scripts) == len(plain.scripts) == len(SCRIPTS) + 2
    assert evil.having("img") == []
    assert not any(key.startswith("on") for _, attrs in evil.elements for key in attrs)
    assert hostile.baseline in "".join(evil.text)


def test_a_search_that_has_only_begun_has_a_report(filled: Any, tmp_path: Path) -> None:
    from sqlalchemy import delete, update

    from search.store.models import Candidate, MeasurementRow, Search

    def begin(session: Any) -> None:
        session.execute(delete(MeasurementRow))
        session.execute(delete(Candidate))
        session.execute(update(Search).values(state="queued", started=None, ended=None, device_id=None))

    filled.store.write(begin)
    page = Page(written(filled, tmp_path))
    assert page.data["points"] == {}
    assert "there is no front" in "".join(page.text)


def test_a_failed_write_leaves_the_old_report_and_no_rest(
    filled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with filled.store.read() as reader, pytest.raises(UserError, match="No space left"):
        write_report(reader, filled.name, target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.glob("*report*")] == ["report.html"]


def test_a_folder_or_a_file_in_the_way_is_named(filled: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with filled.store.read() as reader:
        with pytest.raises(UserError, match="is a folder"):
            write_report(reader, filled.name, tmp_path)
        with pytest.raises(UserError, match=r"file/report\.html: cannot write the report"):
            write_report(reader, filled.name, tmp_path / "file" / "report.html")


def test_reports_load_no_torch_ray_or_optuna() -> None:
    code = (
        "import sys, dashboards.report; print(sorted({'torch', 'ray', 'optuna', 'timm'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
