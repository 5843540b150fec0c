"""`/searches/NAME`: the front of a search, its candidates, and how it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, JSONResponse

from dashboards import actions, rendering, search_data, summary
from dashboards.figures.points import Point
from dashboards.pages.rendering import Live, candidate_url, live, page, search_url, update
from dashboards.reading import MayWrite, Reading
from dashboards.search_context import search_context
from search import waiting
from search.states import ENDED_SEARCH
from search.store.read.revision import revision

PARTS = (
    "standing",
    "front_words",
    "front_caption",
    "curves_words",
    "curves_table",
    "measured",
    "settings",
    "events",
)

router = APIRouter(include_in_schema=False)


@router.get("/searches/{name:path}/data")
def data(reader: Reading, name: str, writes: MayWrite) -> JSONResponse:
    """What the open page takes over: its parts, the data of its charts, the table's headings, and [key, version, HTML]
    of every row."""
    found, values = _found(reader, name, writes)
    row_html = rendering.part("candidate_row")
    rows = [[row.key, rendering.version(row), str(row_html(row))] for row in values["rows"]]
    columns = rendering.render("sections/columns.html", columns=values["columns"])
    return update(replace(found, data={**found.data, "columns": columns, "rows": rows}))


@router.get("/searches/{name:path}")
def show(reader: Reading, name: str, writes: MayWrite) -> HTMLResponse:
    found, values = _found(reader, name, writes)
    address = search_url(name)
    return page(
        "front.html", found, title=name, source=f"{address}/data", stream=f"/api{address}/changes", **values
    )


def _found(reader: Reading, name: str, writes: bool) -> tuple[Live, dict[str, Any]]:
    loaded = search_data.load(reader, name)

    def href(point: Point) -> str:
        return candidate_url(name, point.number)

    place = waiting.place_of(reader, name)
    context = search_context(loaded)
    values = context.values(href) | {
        "progress": summary.progress(loaded.search, summary.counts(loaded), loaded.written),
        "notice": "" if actions.waits(place) else summary.notice(loaded.search),
        "may_write": writes,
        "actions": actions.of(loaded.search, place),
        "figures": summary.page_figures(loaded, candidate_url(name, "teacher")),
    }
    ended = loaded.search.state in ENDED_SEARCH
    parts = (*PARTS, "actions") if writes else PARTS
    return live(revision(reader, loaded.search), parts, values, ended=ended, chart=context.chart()), values
