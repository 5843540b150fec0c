"""How a page is made: a shell, and parts that are rendered by themselves, so that an open page can take over each."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse, JSONResponse
from markupsafe import Markup

from dashboards import assets, rendering


def search_url(name: str) -> str:
    return f"/searches/{quote(name, safe='')}"


def candidate_url(name: str, number: int | str) -> str:
    """number: negative for a baseline, or `teacher`."""
    return f"{search_url(name)}/candidates/{number}"


STATIC = {"asset": assets.url, "plotly": assets.PLOTLY_URL, "url_of": search_url}


@dataclass(frozen=True)
class Live:
    """What of a page can change while it is open. revision: of all that, as the event streams tell it.
    ended: whether nothing more is expected. parts: element's id -> HTML inside it. data: whatever else the page's
    script draws from."""

    revision: str
    ended: bool
    parts: Mapping[str, str]
    data: Mapping[str, Any] = field(default_factory=dict)


def live(
    revision: str, names: Sequence[str], values: Mapping[str, Any], *, ended: bool = False, **data: Any
) -> Live:
    """names: files of `templates/sections`, which become elements of the same id."""
    parts = {name: rendering.render(f"sections/{name}.html", **STATIC, **values) for name in names}
    return Live(revision, ended, parts, data)


def page(template: str, found: Live, *, title: str, source: str, stream: str, **context: Any) -> HTMLResponse:
    """A page that keeps itself up to date. source: where `update` answers. stream: of the events that tell when."""
    return render(
        template,
        title=title,
        live={"source": source, "stream": stream, "revision": found.revision, "ended": found.ended},
        part=lambda name: _part(name, found.parts[name]),
        data={name: rendering.embedded(value) for name, value in found.data.items()},
        **context,
    )


def update(found: Live) -> JSONResponse:
    """The same as the page would show, for a page that is open."""
    parts = {name: [_version(html), html] for name, html in found.parts.items()}
    return JSONResponse({"revision": found.revision, "ended": found.ended, "parts": parts, **found.data})


def render(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page from one of the templates; every value is escaped."""
    values = STATIC | {"live": None, "status": status} | context
    return HTMLResponse(rendering.render(template, **values), status)


def _part(name: str, html: str) -> Markup:
    opening = Markup('<div id="{}" data-version="{}">').format(name, _version(html))
    return opening + Markup(html) + Markup("</div>")


def _version(html: str) -> str:
    return f"{zlib.crc32(html.encode('utf-8', 'backslashreplace')):08x}"
