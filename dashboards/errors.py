"""What a browser or a program is told when it cannot have what it asked for: a page, or JSON under /api."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse
from starlette.responses import Response


def refusal(scope: Any, status: int, text: str) -> Response:
    """An answer of that HTTP status: `{"detail": text}` under /api, else a page."""
    if scope["path"] == "/api" or scope["path"].startswith("/api/"):
        return JSONResponse({"detail": text}, status)
    from dashboards.pages.rendering import render

    return render("error.html", status, title=HTTPStatus(status).phrase, text=text)
