"""`/searches/NAME/candidates/NUMBER`: one candidate, or a baseline by its negative number."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse

from dashboards.pages.rendering import render
from dashboards.reading import Reading
from search.store.read.candidates import candidate
from search.store.read.searches import search_by_name

router = APIRouter()
Number = Annotated[int, Path(ge=-(2**31), lt=2**31)]


@router.get("/searches/{name:path}/candidates/{number}", response_class=HTMLResponse)
def show(reader: Reading, name: str, number: Number) -> HTMLResponse:
    row = candidate(reader, search_by_name(reader, name).id, number)
    return render("candidate.html", title=f"{name} #{number}", search=name, candidate=row)
