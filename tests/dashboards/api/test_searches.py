"""The API against the command line, and against its own OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from dashboards.api import models
from search.cli.main import main

Printed = Callable[..., Any]


@pytest.fixture
def printed(filled_once: Any, capsys: pytest.CaptureFixture[str]) -> Printed:
    """The JSON that a command prints."""

    def run(*arguments: str) -> Any:
        assert main([*arguments, "--json", "--db", str(filled_once.path)]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_searches_are_those_of_status(asked: Any, printed: Printed) -> None:
    assert asked.get("/api/searches").json() == printed("status")
    assert asked.get("/api/searches/digits").json() == printed("status", "digits")


def test_the_front_is_that_of_front(asked: Any, printed: Printed) -> None:
    assert asked.get("/api/searches/digits/front").json() == printed("front", "digits")
    everything = asked.get("/api/searches/digits/front?all=true").json()
    assert everything == printed("front", "digits", "--all")
    assert len(everything["candidates"]) == 22


def test_each_candidate_and_baseline_is_that_of_show(asked: Any, printed: Printed) -> None:
    for number in (-1, *range(1, 23)):
        shown = "resnet" if number < 0 else str(number)
        found = asked.get(f"/api/searches/digits/candidates/{number}").json()
        assert found == printed("show", "digits", shown)
        for part in ("epochs", "measurements", "attempts"):
            assert asked.get(f"/api/searches/digits/candidates/{number}/{part}").json() == found[part]


def test_pages_of_candidates_hold_each_of_them_once(asked: Any, printed: Printed) -> None:
    pages = [
        asked.get(f"/api/searches/digits/candidates?offset={start}&limit=9").json()
        for start in (0, 9, 18, 27)
    ]
    assert [page["total"] for page in pages] == [22] * 4
    assert [len(page["candidates"]) for page in pages] == [9, 9, 4, 0]
    joined = [point for page in pages for point in page["candidates"]]
    assert joined == printed("front", "digits", "--all")["candidates"]


def test_events_are_paged_by_their_last_id(filled: Any, ask_at: Any) -> None:
    from search.store.read import events

    asked = ask_at(filled.path)
    with filled.store.read() as reader:
        all_of_them = [event.text for event in events.events(reader, 1)]
    assert len(all_of_them) > 4
    after, texts = 0, []
    while after is not None:
        page = asked.get(f"/api/searches/digits/events?after={after}&limit=2").json()
        assert len(page["events"]) <= 2
        texts += [event["text"] for event in page["events"]]
        after = page["next"]
    assert texts == all_of_them


def test_without_a_database_the_list_is_empty_and_a_search_is_not_there_yet(
    ask_at: Any, tmp_path: Any
) -> None:
    asked = ask_at(tmp_path / "none.db")
    assert (asked.get("/api/searches").status, asked.get("/api/searches").json()) == (200, [])
    answer = asked.get("/api/searches/digits")
    assert answer.status == 503
    assert "paretovit run search.yaml" in answer.json()["detail"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "status", "told"),
    [
        ("/api/searches/digit", 404, "did you mean 'digits'"),
        ("/api/searches/digit/front", 404, "did you mean 'digits'"),
        ("/api/searches/digit/changes", 404, "did you mean 'digits'"),
        ("/api/searches/digits/candidates/99", 404, "there are 1 to 22"),
        ("/api/searches/digits/candidates/0", 404, "there are 1 to 22"),
        ("/api/searches/digits/candidates/99/epochs", 404, "there are 1 to 22"),
        ("/api/searches/digits/candidates/one", 422, "number"),
        ("/api/searches/digits/candidates/" + "9" * 30, 422, "number"),
        ("/api/searches/digits/candidates?limit=0", 422, "limit"),
        ("/api/searches/digits/candidates?limit=1001", 422, "limit"),
        ("/api/searches/digits/candidates?offset=-1", 422, "offset"),
        ("/api/searches/digits/candidates?offset=" + "9" * 30, 422, "offset"),
        ("/api/searches/digits/events?after=x", 422, "after"),
        ("/api/searches/digits/front?all=perhaps", 422, "all"),
        ("/api/changes?since=" + "x" * 100, 422, "since"),
        ("/api/nothing", 404, "nothing at this address"),
        ("/api", 404, "nothing at this address"),
    ],
)
def test_a_mistake_is_one_line_of_json(asked: Any, target: str, status: int, told: str) -> None:
    answer = asked.get(target)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"detail"}
    assert told in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


def test_verbs_that_write_are_not_allowed_anywhere(asked: Any) -> None:
    for route in asked.routes():
        for verb in ("POST", "PUT", "PATCH", "DELETE"):
            assert asked.get(route, method=verb).status == 405, (verb, route)
    assert asked.get("/api/searches", method="POST").headers["allow"] == "GET"


ANSWERS = {
    "/api/queue": models.Waiting,
    "/api/searches": list[models.Status],
    "/api/searches/{name}": models.Status,
    "/api/searches/{name}/front": models.Front,
    "/api/searches/{name}/events": models.Events,
    "/api/searches/{name}/candidates": models.Page,
    "/api/searches/{name}/candidates/{number}": models.Candidate,
    "/api/searches/{name}/candidates/{number}/epochs": list[models.Epoch],
    "/api/searches/{name}/candidates/{number}/measurements": list[models.Measurement],
    "/api/searches/{name}/candidates/{number}/attempts": list[models.Attempt],
}


def test_every_answer_has_the_fields_that_the_document_promises(asked: Any) -> None:
    """The models forbid others, and those without a default must be there."""
    paths = asked.get("/api/openapi.json").json()["paths"]
    assert set(paths) == set(ANSWERS) | {"/api/changes", "/api/searches/{name}/changes"}
    for path, model in ANSWERS.items():
        adapter = TypeAdapter(model)
        numbers = ("-1", *map(str, range(1, 23))) if "{number}" in path else ("",)
        for number in numbers:
            answer = asked.get(path.replace("{name}", "digits").replace("{number}", number))
            adapter.validate_json(answer.body)
        documented = paths[path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert documented.get("$ref") or documented["items"]["$ref"]
    models.Front.model_validate_json(asked.get("/api/searches/digits/front?all=true").body)


def test_the_document_names_units_errors_and_parameters(asked: Any) -> None:
    document = asked.get("/api/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert "milliseconds" in schemas["Point"]["properties"]["values"]["description"]
    assert "milliseconds" in schemas["Measurement"]["properties"]["latency_ms"]["description"]
    for path, item in document["paths"].items():
        assert item["get"]["description"], path
        assert {"401", "403", "404", "422", "503"} <= set(item["get"]["responses"]), path
        for parameter in item["get"].get("parameters", []):
            assert parameter["description"], (path, parameter["name"])


def test_no_page_of_documents_loads_from_elsewhere(asked: Any) -> None:
    assert asked.get("/docs").status == asked.get("/redoc").status == 404


def test_words_of_a_hostile_database_are_json_strings(hostile: Any, ask_at: Any) -> None:
    from urllib.parse import quote

    from search.front import front_view
    from search.store.read.searches import search_by_name

    asked = ask_at(hostile.path)
    name = quote(hostile.name, safe="")
    with hostile.store.read() as reader:
        view = front_view(reader, search_by_name(reader, hostile.name)).to_dict(all=True)
    answer = asked.get(f"/api/searches/{name}/front?all=true")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == view
    assert asked.get(f"/api/searches/{name}/candidates/1").json()["search"] == hostile.name
    assert asked.get(f"/api/searches/{name}").json()["search"]["name"] == hostile.name
