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


def teach(filled: Any) -> None:
    """Gives the search a teacher that does no better than guessing."""

    def write(session: Any) -> None:
        from search.store.models import Search
        from search.store.write import candidates
        from spaces.spec import ArchSpec

        search = session.query(Search).one()
        training = {**search.config["training"], "distillation": {"kind": "soft"}}
        search.config = {**search.config, "training": training}
        spec = ArchSpec("resnet18", {"num_classes": 10}, 8)
        row = candidates.add(
            session, search.id, 0, "", spec, point={}, analysis={"params": 1234}, name="resnet18"
        )
        row.state = "finished"
        candidates.learn(row, {"accuracy": 0.11}, {"accuracy": (0.07, 0.16)})

    filled.store.write(write)


def test_the_teacher_has_a_page_that_the_others_lead_to(filled: Any, ask_at: Callable[..., Any]) -> None:
    teach(filled)
    asked = ask_at(filled.path)
    page = asked.get("/searches/digits/candidates/teacher")
    assert page.status == 200
    guessing = "not told apart from guessing one of 10 classes by its interval"
    assert (
        f"resnet18, accuracy 0.110 (0.070–0.160), {guessing}; candidates learn its probabilities" in page.text
    )
    assert "timm.create_model(&#39;resnet18&#39;, num_classes=10)" in page.text
    for name, (version, html) in asked.get(f"{page_of(filled)}/teacher/data").json()["parts"].items():
        assert f'<div id="{name}" data-version="{version}">{html}</div>' in page.text
    for address in ("/searches/digits", f"{page_of(filled)}/1"):
        assert 'href="/searches/digits/candidates/teacher"' in asked.get(address).text


def test_a_search_without_a_teacher_says_so(asked: Any) -> None:
    answer = asked.get("/searches/digits/candidates/teacher")
    assert (answer.status, "no teacher" in answer.text) == (404, True)
    assert "candidates/teacher" not in asked.get("/searches/digits").text


def page_of(filled: Any) -> str:
    return f"/searches/{filled.name}/candidates"
