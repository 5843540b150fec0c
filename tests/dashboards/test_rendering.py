from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest

from dashboards import rendering


def test_embedded_json_holds_no_markup_and_is_the_same_value() -> None:
    value = {"a": "</script><!--&lt;", "b": [1.5, None, "\u2028"]}
    text = str(rendering.embedded(value))
    assert not set("<>&") & set(text)
    assert json.loads(text) == value


def test_a_number_that_json_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        rendering.embedded({"a": float("nan")})


def test_values_are_escaped_and_missing_ones_are_errors() -> None:
    context = {
        "title": "<b>",
        "text": "<i>",
        "status": 404,
        "live": None,
        "asset": str,
        "plotly": "",
        "url_of": str,
    }
    page = rendering.render("error.html", **context)
    assert "&lt;b&gt;" in page
    assert "<i>" not in page
    with pytest.raises(jinja2.UndefinedError):
        rendering.render("error.html", **{key: value for key, value in context.items() if key != "text"})


def test_a_version_changes_with_what_it_is_of() -> None:
    assert rendering.version(("a", 1)) == rendering.version(("a", 1))
    assert rendering.version(("a", 1)) != rendering.version(("a", 2))


def test_what_two_templates_show_alike_stands_in_a_section() -> None:
    """Lines long enough to say something; a page and the report may share the frame around a section."""
    folder = rendering.HERE / "templates"
    lines = {
        str(file.relative_to(folder)): {
            line.strip() for line in file.read_text().splitlines() if len(line) > 75
        }
        for file in sorted(folder.rglob("*.html"))
    }
    assert sum(map(len, lines.values())) > 50
    shared = {(a, b): lines[a] & lines[b] for a, b in itertools.combinations(lines, 2)}
    assert {pair: found for pair, found in shared.items() if found} == {}


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u2069", "\x1b", "\x00"])
def test_no_text_of_a_database_turns_the_words_around_it(sign: str) -> None:
    row = rendering.render("sections/teacher_words.html", **teacher(f"name{sign}gnp"))
    assert sign not in row
    assert "name\ufffdgnp" in row


def test_letters_that_are_written_from_the_right_and_markup_of_our_own_stay() -> None:
    text = rendering.render("sections/teacher_words.html", **teacher("\u05d0\u05d1\u200f <b>"))
    assert "<bdi>\u05d0\u05d1\u200f &lt;b&gt;</bdi>" in text
    assert '<span class="state finished">' in text


def teacher(told: str) -> dict[str, Any]:
    row = SimpleNamespace(reason="")
    return {"told": told, "state": "finished", "row": row, "search": SimpleNamespace(name="a"), "url_of": str}
