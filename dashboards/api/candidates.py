"""`/api/searches/NAME/candidates`: the candidates of a search, and each with everything that is known of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from dashboards.api import models
from dashboards.api.answers import ERRORS, Name, Number, answer
from dashboards.reading import Reading
from search.candidate_json import attempts_of, candidate_dict, epochs_of, measurements_of
from search.front import front_view
from search.store.read.candidates import candidate
from search.store.read.searches import search_by_name

router = APIRouter(prefix="/api/searches/{name:path}/candidates", tags=["candidates"], responses=ERRORS)


@router.get("", response_model=models.Page)
def list_candidates(
    reader: Reading,
    name: Name,
    offset: Annotated[int, Query(ge=0, lt=2**31, description="Candidates to leave out")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many")] = 100,
) -> Response:
    """Candidates by number, baselines not among them, with where each stands to the front."""
    points = front_view(reader, search_by_name(reader, name)).candidates
    shown = [point.to_dict() for point in points[offset : offset + limit]]
    return answer({"total": len(points), "offset": offset, "limit": limit, "candidates": shown})


@router.get("/{number}", response_model=models.Candidate, response_model_exclude_unset=True)
def show(reader: Reading, name: Name, number: Number) -> Response:
    """Everything that is known of one candidate or baseline."""
    return answer(candidate_dict(reader, search_by_name(reader, name), str(number)))


@router.get("/{number}/epochs", response_model=list[models.Epoch])
def epochs(reader: Reading, name: Name, number: Number) -> Response:
    """Its learning curve."""
    return answer(epochs_of(reader, candidate(reader, search_by_name(reader, name).id, number)))


@router.get("/{number}/measurements", response_model=list[models.Measurement])
def measurements(reader: Reading, name: Name, number: Number) -> Response:
    """Its measurements with their conditions, the newest first."""
    return answer(measurements_of(reader, candidate(reader, search_by_name(reader, name).id, number)))


@router.get("/{number}/attempts", response_model=list[models.Attempt])
def attempts(reader: Reading, name: Name, number: Number) -> Response:
    """The attempts at its jobs, in the order of their start."""
    return answer(attempts_of(reader, candidate(reader, search_by_name(reader, name).id, number)))
