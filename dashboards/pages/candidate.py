"""`/searches/NAME/candidates/NUMBER`: one candidate, a baseline by its negative number, or `teacher`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import Field

from dashboards import candidate_context as context
from dashboards import teacher_context
from dashboards.candidate_data import load
from dashboards.pages.rendering import Live, candidate_url, live, page, search_url, update
from dashboards.reading import Reading
from search.states import ENDED_SEARCH
from search.store.read.revision import revision
from search.store.reader import Reader

TEACHER_PARTS = ("teacher_words", "epochs", "recall", "attempts", "files")
PARTS = ("verdict", "quantities", "epochs", "recall", "measurements", "attempts", "files")

router = APIRouter(include_in_schema=False)
Number = Annotated[Annotated[int, Field(ge=-(2**31), lt=2**31)] | Literal["teacher"], Path()]


@router.get("/searches/{name:path}/candidates/{number}/data")
def data(reader: Reading, name: str, number: Number) -> JSONResponse:
    return update(_found(reader, name, number)[0])


@router.get("/searches/{name:path}/candidates/{number}")
def show(reader: Reading, name: str, number: Number) -> HTMLResponse:
    found, values = _found(reader, name, number)
    is_teacher = number == "teacher"
    return page(
        "teacher.html" if is_teacher else "candidate.html",
        found,
        title=f"{'teacher' if is_teacher else values['label']} of {name}",
        source=f"{candidate_url(name, number)}/data",
        stream=f"/api{search_url(name)}/changes",
        **values,
    )


def _found(reader: Reader, name: str, number: int | Literal["teacher"]) -> tuple[Live, dict[str, Any]]:
    if number == "teacher":
        return _teacher(reader, name)
    loaded = load(reader, name, number)
    values = context.values(loaded) | {"href": lambda number: candidate_url(name, number)}
    ended = loaded.search.state in ENDED_SEARCH
    found = live(revision(reader, loaded.search), PARTS, values, ended=ended, chart=context.chart(loaded))
    return found, values


def _teacher(reader: Reader, name: str) -> tuple[Live, dict[str, Any]]:
    loaded = teacher_context.load(reader, name)
    values, chart = teacher_context.values(loaded), teacher_context.chart(loaded)
    ended = loaded.search.state in ENDED_SEARCH
    return live(revision(reader, loaded.search), TEACHER_PARTS, values, ended=ended, chart=chart), values
