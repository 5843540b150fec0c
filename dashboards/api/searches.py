"""`/api/searches`: how searches stand, their fronts, their events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from dashboards.api import models
from dashboards.api.answers import ERRORS, Name, answer
from dashboards.reading import MaybeReading, Reading
from search.front import front_view
from search.status import status as status_of_name
from search.status import statuses
from search.store.read import events as read_events
from search.store.read.searches import search_by_name
from search.store.read.status import iso

router = APIRouter(prefix="/api/searches", tags=["searches"], responses=ERRORS)


@router.get("", response_model=list[models.Status])
def list_searches(reader: MaybeReading) -> Response:
    """How every search stands, the newest first; an empty list while there is no database."""
    return answer([] if reader is None else statuses(reader))


@router.get("/{name:path}/front", response_model=models.Front, response_model_exclude_unset=True)
def front(
    reader: Reading,
    name: Name,
    all: Annotated[bool, Query(description="With every candidate, not only the front")] = False,
) -> Response:
    """The front, the baselines, and how everything was measured."""
    return answer(front_view(reader, search_by_name(reader, name)).to_dict(all=all))


@router.get("/{name:path}/events", response_model=models.Events)
def events(
    reader: Reading,
    name: Name,
    after: Annotated[int, Query(ge=0, lt=2**31, description="Only events with a higher id")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many")] = 100,
) -> Response:
    """What happened, in words."""
    found = read_events.events(reader, search_by_name(reader, name).id, after=after, limit=limit + 1)
    shown = [
        {"id": one.id, "time": iso(one.time), "kind": one.kind, "candidate": one.candidate, "text": one.text}
        for one in found[:limit]
    ]
    return answer({"events": shown, "next": shown[-1]["id"] if len(found) > limit else None})


@router.get("/{name:path}", response_model=models.Status)
def status(reader: Reading, name: Name) -> Response:
    """How one search stands."""  # the last route: in a database that others made, a name may hold a slash
    return answer(status_of_name(reader, name))
