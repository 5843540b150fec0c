"""Files that hold no data: style sheets, scripts, and plotly.js out of the plotly package.

Their URLs change with their contents, so that a browser may keep them for ever.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse

FOLDER = Path(__file__).parent / "static"
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png"}
PLOTLY_URL = f"/static/plotly/{version('plotly')}/plotly.min.js"

router = APIRouter()


def url(name: str) -> str:
    """The URL of a file of `dashboards/static`. Raises KeyError for one that is not there."""
    return f"/static/{_digest(_files()[name])}/{name}"


@router.get(PLOTLY_URL)
def plotly() -> FileResponse:
    import plotly

    path = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return FileResponse(path, media_type="text/javascript", headers=FOREVER)


@router.get("/static/{digest}/{name}")
def static(digest: str, name: str) -> FileResponse:
    """A file by its name in the folder: a name that is not in the listing is no path to look for."""
    path = _files().get(name)
    if path is None or digest != _digest(path):
        raise HTTPException(404, "no such file")
    return FileResponse(path, media_type=_TYPES[path.suffix], headers=FOREVER)


def files(folder: Path) -> dict[str, Path]:
    """Name -> file, of those that lie in the folder itself and are of a kind that a page uses."""
    found = (path for path in folder.iterdir() if path.suffix in _TYPES)
    return {path.name: path for path in found if path.is_file() and not path.is_symlink()}


@lru_cache(maxsize=1)
def _files() -> dict[str, Path]:
    return files(FOLDER)


@lru_cache(maxsize=64)
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
