"""Event streams (server-sent events) that say when something shown has changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from dashboards.api import models
from dashboards.api.answers import ERRORS, Name
from dashboards.live import Changes
from dashboards.reading import Reading
from search.store.read.searches import search_by_name

_JSON = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
_STREAMS: dict[int | str, dict[str, Any]] = {
    status: {"description": error["description"], "content": _JSON} for status, error in ERRORS.items()
}
router = APIRouter(prefix="/api", tags=["changes"], responses=_STREAMS)


def _changes(request: Request) -> Changes:
    return request.app.state.changes


def _known(
    since: Annotated[
        str | None, Query(max_length=40, description="Revision that is known; a later one is told at once")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="As `since`; a browser sends it as it reconnects")
    ] = None,
) -> str | None:
    return last_event_id or since


def _there(reader: Reading, name: Name) -> str:
    return search_by_name(reader, name).name


Watched = Annotated[Changes, Depends(_changes)]
Known = Annotated[str | None, Depends(_known)]
There = Annotated[str, Depends(_there, scope="function")]


@router.get("/changes", response_class=EventSourceResponse)
async def changes(watched: Watched, known: Known) -> AsyncIterator[ServerSentEvent]:
    """Tells `changed` when anything shown of any search has changed, within about a second.

    `id` and `data.revision` name what there is now; `data.searches` are those that have changed.
    """
    async for event in _events(watched, None, known):
        yield event


@router.get("/searches/{name:path}/changes", response_class=EventSourceResponse)
async def changes_of_search(watched: Watched, known: Known, name: There) -> AsyncIterator[ServerSentEvent]:
    """Tells `changed` when anything shown of the search has changed, within about a second."""
    async for event in _events(watched, name, known):
        yield event


async def _events(changes: Changes, name: str | None, known: str | None) -> AsyncIterator[Any]:
    async for change in changes.follow(name, known):
        data = models.Revision(revision=change.revision, searches=list(change.searches))
        yield ServerSentEvent(event="changed", id=change.revision, data=data)
