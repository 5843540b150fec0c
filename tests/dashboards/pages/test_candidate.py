from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("number", [*range(1, 23), -1])
def test_every_candidate_and_baseline_has_a_page_that_is_its_update(asked: Any, number: int) -> None:
    page = asked.get(f"/searches/digits/candidates/{number}")
    update = asked.get(f"/searches/digits/candidates/{number}/data").json()
    assert page.status == 200
    for name, (version, html) in update["parts"].items():
        assert f'<div id="{name}" data-version="{version}">{html}</div>' in page.text


def test_its_figures_are_the_stored_ones(asked: Any) -> None:
    values = asked.get("/api/searches/digits/candidates/9").json()["values"]
    page = asked.get("/searches/digits/candidates/9").text
    for value in values.values():
        assert f'data-sort="{value!r}"' in page


@pytest.mark.parametrize("number", ["99", "0", "-7"])
def test_a_number_that_is_not_there_is_told_on_a_page(asked: Any, number: str) -> None:
    answer = asked.get(f"/searches/digits/candidates/{number}")
    assert answer.status == 404
    assert "there are 1 to 22" in answer.text


def test_the_rebuild_line_of_a_network_of_the_users_own_imports_its_module(
    filled: Any, ask_at: Callable[..., Any]
) -> None:
    from search.store.models import Search

    def write(session: Any) -> None:
        row = session.query(Search).one()
        row.data = {**row.data, "plugins": {"families": {"vit": "no_such_module"}}}

    filled.store.write(write)
    asked = ask_at(filled.path)
    line = "import timm, no_such_module; timm.create_model("
    assert line in asked.get("/searches/digits").text
    families = set()
    for number in (1, 2, -1):
        found = asked.get(f"/api/searches/digits/candidates/{number}").json()
        is_own = found["family"] == "vit"
        assert found["module"] == ("no_such_module" if is_own else None)
        assert (line in asked.get(f"/searches/digits/candidates/{number}").text) == is_own
        families.add(found["family"])
    assert families == {"vit", "swin", "baseline"}
