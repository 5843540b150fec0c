"""What a browser or a program is told when it cannot have what it asked for: a page, or JSON under /api."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from dashboards.api.answers import answer
from dashboards.pages.rendering import render


def is_api(scope: Mapping[str, Any]) -> bool:
    """Whether a program asks, which wants JSON."""
    return scope["path"] == "/api" or scope["path"].startswith("/api/")


def refusal(scope: Mapping[str, Any], status: int, text: str) -> Response:
    """An answer of that HTTP status: `{"detail": text}` under /api, else a page."""
    if is_api(scope):
        return answer({"detail": text}, status)
    return render("error.html", status, title=HTTPStatus(status).phrase, text=text)
