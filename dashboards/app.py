"""The dashboard: pages and a REST API on one database, which it only reads."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dashboards import assets
from dashboards.auth import Guard
from dashboards.errors import refusal
from dashboards.pages import candidate, front, searches
from search.errors import UserError
from search.store.location import locate
from search.store.readonly import DatabaseMissing, DatabaseUnreadable, ReadOnlyStore


def create_app(db: str | None, token: str, port: int) -> FastAPI:
    """An application on the database at `db`, else PARETOVIT_DB, else ./paretovit.db; it need not be there yet.

    token: what a visitor must bring. port: the one that will be listened on, for the check of Host and Origin.
    Raises UserError for a `db` that names no database.
    """
    app = FastAPI(title="paretovit", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.store = ReadOnlyStore(locate(db))
    for router in (assets.router, searches.router, candidate.router, front.router):
        app.include_router(router)
    app.add_exception_handler(UserError, _user_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(Guard, token=token, port=port)
    return app


def _user_error(request: Request, error: Exception) -> Response:
    status = 503 if isinstance(error, DatabaseMissing | DatabaseUnreadable) else 404
    return refusal(request.scope, status, str(error))


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(request.scope, error.status_code, str(error.detail))


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [f"{error['loc'][-1]}: {error['msg']}" for error in error.errors()]
    return refusal(request.scope, 422, "; ".join(found))
