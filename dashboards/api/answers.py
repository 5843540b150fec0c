"""What the resources of the API share: their path parameters and how an answer is sent."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Path, Response

from dashboards.api import models

Name = Annotated[str, Path(description="Name of the search")]
Number = Annotated[
    int, Path(ge=-(2**31), lt=2**31, description="Number of the candidate; a baseline's is negative")
]

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.Error, "description": description}
    for status, description in {
        401: "No token, or a wrong one",
        403: "A Host or an origin that is not the dashboard's own",
        404: "No search or candidate of that name",
        422: "A parameter out of its range",
        503: "The database is missing, or cannot be read now",
    }.items()
}


def answer(value: Any, status: int = 200) -> Response:
    """Plain data as it is: it was checked when it was written, and must equal what the command line prints."""
    return Response(json.dumps(value, allow_nan=False), status, media_type="application/json")
