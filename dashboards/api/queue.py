"""`/api/queue`: what waits for a runner, and what is being run by one."""

from __future__ import annotations

from fastapi import APIRouter, Response

from dashboards.api import models
from dashboards.api.answers import ERRORS, answer
from dashboards.reading import MaybeReading
from search import waiting

router = APIRouter(prefix="/api/queue", tags=["searches"], responses=ERRORS)


@router.get("", response_model=models.Waiting)
def show(reader: MaybeReading) -> Response:
    """The queue, and whether anybody works it off; empty while there is no database."""
    return answer({"has_runner": False, "queue": []} if reader is None else waiting.view(reader))
