"""Templates: the one environment that the report and the pages are rendered with. Everything is escaped."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from dashboards import words
from search import hints

HERE = Path(__file__).parent


def render(template: str, **values: Any) -> str:
    """A template of `templates/` as text. A value that it needs and that is not given raises UndefinedError."""
    return _environment().get_template(template).render(values)


def part(name: str) -> Callable[..., str]:
    """A macro of `templates/parts.html`."""
    return getattr(_environment().globals["parts"], name)


def static(name: str) -> str:
    """The text of a file of `static/`."""
    return (HERE / "static" / name).read_text(encoding="utf-8")


def embedded(value: Any) -> Markup:
    """JSON that can stand in a script element: no `<`, so no end tag and no comment, whatever the strings hold."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def version(value: object) -> str:
    """A few characters that change when what is shown of a frozen value does."""
    return f"{zlib.crc32(repr(value).encode('utf-8', 'backslashreplace')):08x}"


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"moment": words.moment, "iso": _iso, "version": version}
    environment.globals["command"] = hints.command
    environment.globals["parts"] = environment.get_template("parts.html").module
    return environment


def _finalized(value: Any) -> Any:
    """Every value on its way into a page, but for what was rendered before."""
    return words.for_pages(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
