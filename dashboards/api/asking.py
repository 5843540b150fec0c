"""What changes something: submitting a search, asking something of one, deleting one. Part of `serve` alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from dashboards import commands
from dashboards.api import models
from dashboards.api.answers import ERRORS, Name, answer
from dashboards.reading import Reading, store_of
from search import status
from search.requests import Ask, Asked
from search.store.location import Location
from search.store.readonly import ReadOnlyStore

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_BYTES = 1_000_000
_CODES = {409: "The search is in a state in which that cannot be", 413: "The config is too large"}
_ERRORS: dict[int | str, dict[str, Any]] = ERRORS | {
    code: {"model": models.Error, "description": text} for code, text in _CODES.items()
}

router = APIRouter(prefix="/api/searches", tags=["asking"], responses=_ERRORS)


def _location(store: Annotated[ReadOnlyStore, Depends(store_of)]) -> Location:
    return store.location


def _there(reader: Reading, name: Name) -> str:
    """The name of a search that has begun, or of one in the queue."""
    return status.status(reader, name)["search"]["name"]


Place = Annotated[Location, Depends(_location)]
There = Annotated[str, Depends(_there, scope="function")]
Note = Annotated[str, Query(max_length=1000, description="Why; kept with the search")]


@router.post("", response_model=models.Submitted, status_code=201)
async def submit(
    request: Request,
    place: Place,
    priority: Annotated[int, Query(description="From 0 to 9; higher ones go first")] = 5,
    window: Annotated[str | None, Query(description="Hours of the day to run in: 22:00-07:00")] = None,
) -> Response:
    """Queues a search. The body is its config, in YAML or JSON, with absolute paths; it is checked as by `paretovit
    submit`, which is told in the same words (422)."""
    given = await _body(request)
    arguments = ["submit", "-", "--json", f"--priority={priority}"]
    if window is not None:
        arguments.append(f"--window={window}")
    async with request.app.state.checks, _refusing():
        printed = await commands.run(place, arguments, given)
    return answer(json.loads(printed), 201)


@router.post("/{name:path}/pause", response_model=models.Told)
async def pause(place: Place, name: There, note: Note = "") -> Response:
    """Asks a search to rest: trainings end with their epoch."""
    return await _asked(place, name, Asked(Ask.PAUSE, text=note))


@router.post("/{name:path}/resume", response_model=models.Told)
async def resume(place: Place, name: There) -> Response:
    """Takes a pause back while the search still drains; else puts the search into the queue again, for the runner."""
    return await _asked(place, name, Asked(Ask.RESUME))


@router.post("/{name:path}/stop", response_model=models.Told)
async def stop(
    place: Place,
    name: There,
    now: Annotated[bool, Query(description="Do not wait for running jobs")] = False,
    note: Note = "",
) -> Response:
    """Ends a search early: what runs is brought to its end."""
    return await _asked(place, name, Asked(Ask.STOP, now=now, text=note))


@router.post("/{name:path}/notes", response_model=models.Told)
async def note(
    place: Place,
    name: There,
    text: Annotated[str, Query(min_length=1, max_length=1000, description="What to keep among its events")],
) -> Response:
    """Adds a note to the events of a search."""
    return await _asked(place, name, Asked(Ask.NOTE, text=text))


@router.delete("/{name:path}", response_model=models.Told)
async def delete(
    place: Place, name: There, confirm: Annotated[str, Query(description="The name once more")] = ""
) -> Response:
    """Deletes a search that nobody drives, with its results, checkpoints and report."""
    if confirm != name:
        raise HTTPException(422, f"confirm: repeat the name, {name}, to delete the search for good")
    async with _refusing():
        told = await commands.run(place, ["delete", f"--confirm={name}", "--", name])
    return answer({"told": told.strip()})


async def _body(request: Request) -> str:
    """The request's body as text; nothing of it is kept past a size that no config has."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > MOST_BYTES:
            raise HTTPException(413, f"the config holds over {MOST_BYTES:,} bytes; is it the right file?")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise HTTPException(422, "the config is not UTF-8 text") from None


@asynccontextmanager
async def _refusing() -> AsyncIterator[None]:
    """What a command refuses, as an answer: 422 for what is wrong with what was asked, 409 for what is in its way."""
    try:
        yield
    except commands.Refused as error:
        raise HTTPException(422 if error.code == 2 else 409, str(error)) from None


async def _asked(place: Location, name: str, asked: Asked) -> Response:
    return answer({"told": await anyio.to_thread.run_sync(_ask, place, name, asked)})


def _ask(place: Location, name: str, asked: Asked) -> str:
    from search.asking import ask_or_queue
    from search.store.session import open_store

    store = open_store(str(place.path or place.conninfo), create=False)

    def work(session: Session) -> str:
        return ask_or_queue(session, name, asked)

    try:
        return store.write(work)
    finally:
        store.close()
