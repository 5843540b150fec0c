"""`/searches/NAME`: the front of a search."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from dashboards.pages.rendering import render
from dashboards.reading import Reading
from search.front import front_view
from search.store.read.searches import search_by_name

router = APIRouter()


@router.get("/searches/{name:path}", response_class=HTMLResponse)
def show(reader: Reading, name: str) -> HTMLResponse:
    view = front_view(reader, search_by_name(reader, name))
    return render("front.html", title=name, view=view.to_dict())
