"""Templates of the pages."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from fastapi.responses import HTMLResponse

from dashboards import assets

_TEMPLATES = Path(__file__).parent.parent / "templates"


def render(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page from one of the templates; every value is escaped."""
    return HTMLResponse(_environment().get_template(template).render(**context), status)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"asset": assets.url, "plotly": assets.PLOTLY_URL}
    return environment
