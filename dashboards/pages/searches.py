"""`/`: all searches."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from dashboards.pages.rendering import render
from dashboards.reading import MaybeReading
from search.store.read.searches import searches
from search.store.read.status import status_of

router = APIRouter()


@router.get("/", response_class=HTMLResponse)
def show(reader: MaybeReading) -> HTMLResponse:
    found = [] if reader is None else [status_of(reader, row) for row in searches(reader)]
    return render("searches.html", title="Searches", searches=found)
