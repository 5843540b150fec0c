"""The dashboard: pages and a REST API on one database, which it only reads, but for what `serve` lets people ask."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dashboards import assets
from dashboards.api import asking as api_asking
from dashboards.api import candidates as api_candidates
from dashboards.api import changes as api_changes
from dashboards.api import queue as api_queue
from dashboards.api import searches as api_searches
from dashboards.auth import Guard
from dashboards.errors import refusal
from dashboards.live import Changes
from dashboards.pages import candidate, front, searches
from search.errors import UserError
from search.requests import NothingToDo
from search.store.location import Location
from search.store.readonly import DatabaseMissing, DatabaseUnreadable, ReadOnlyStore

API = (api_changes, api_queue, api_candidates, api_searches)
PAGES = (assets, searches, candidate, front)
_PLAIN = {404: "There is nothing at this address.", 405: "This address does not answer to that."}
DESCRIPTION = """Architecture searches: how they stand, their fronts, their candidates. What changes something is part
of `paretovit serve` alone.

Give the token of the link that `paretovit dashboard` prints as `Authorization: Bearer TOKEN`."""


class Dashboard(FastAPI):
    """The application, with a guard around all of it, its own errors included. `state.changes` is to be closed."""

    def __init__(self, location: Location, token: str, port: int, *, may_write: bool) -> None:
        super().__init__(
            title="paretovit",
            description=DESCRIPTION,
            docs_url=None,  # FastAPI's pages of documents load scripts from a CDN
            redoc_url=None,
            openapi_url="/api/openapi.json",
            redirect_slashes=False,
        )
        self._guard = {"token": token, "port": port}
        self.state.store = ReadOnlyStore(location)
        self.state.may_write = may_write
        self.state.checks = asyncio.Semaphore(1)  # of configs: each may read a whole data set
        self.state.changes = Changes(self.state.store)

    def build_middleware_stack(self) -> Any:
        return Guard(super().build_middleware_stack(), **self._guard)


def create_app(location: Location, token: str, port: int, *, may_write: bool = False) -> Dashboard:
    """An application on the database of that place, which need not be there yet.

    token: what a visitor must bring. port: the one that will be listened on, for the check of Host and Origin.
    may_write: whether searches can be submitted, paused, stopped and deleted.
    """
    app = Dashboard(location, token, port, may_write=may_write)
    for module in (*API, *((api_asking,) if may_write else ())):
        app.include_router(module.router)
    for module in PAGES:
        app.include_router(module.router, include_in_schema=False)
    app.add_exception_handler(UserError, _user_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _failed)
    return app


def _user_error(request: Request, error: Exception) -> Response:
    status = 503 if isinstance(error, DatabaseMissing | DatabaseUnreadable) else 404
    if isinstance(error, NothingToDo):
        status = 409
    return refusal(request.scope, status, str(error))


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = _PLAIN.get(error.status_code, error.detail)
    response = refusal(request.scope, error.status_code, text)
    response.headers.update(error.headers or {})
    return response


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [f"{one['loc'][-1]}: {one['msg']}" for one in error.errors()]
    return refusal(request.scope, 422, "; ".join(found))


def _failed(request: Request, error: Exception) -> Response:
    """A mistake of ours, or rows that nobody of ours wrote. The server prints the traceback where it runs."""
    return refusal(
        request.scope, 500, f"The dashboard failed ({type(error).__name__}); its terminal says more."
    )
