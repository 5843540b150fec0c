"""The report: a whole search in one HTML file that needs no network and no server.

Its figures, the page's script and plotly.js are embedded. A content security policy lets only those scripts run that
were embedded here, by their hashes, so that nothing stored in a database can become code.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from dashboards import rendering
from dashboards.search_context import search_context
from dashboards.search_data import SearchData, load
from search.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from search.store.reader import Reader

# In the order that they need each other; the pages load the same files, but for the last.
SCRIPTS = ("theme.js", "table.js", "chart.js", "curves.js", "front.js", "report.js")


def write_report(session: Reader | Session, name: str, path: Path) -> Path:
    """Writes the report of a search to `path`, whole or not at all, and returns the absolute path.

    Raises UserError for an unknown search and for a place that cannot be written.
    """
    page = render(load(session, name))
    path = path.absolute()
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name the file that the report should be")
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: is a device or a pipe; name the file that the report should be")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, page.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UserError(
            f"{path}: cannot write the report: {error.strerror}; choose another with --to FILE"
        ) from error
    return path


def render(data: SearchData) -> str:
    """The report as HTML text."""
    found = search_context(data)
    plotly, scripts = Markup(_plotly()), [Markup(rendering.static(name)) for name in SCRIPTS]
    return rendering.render(
        "report.html",
        **found.values(),
        csp=_policy(plotly, *scripts),
        css=Markup(rendering.static("look.css")),
        plotly=plotly,
        scripts=scripts,
        data=rendering.embedded(found.chart()),
        version=version("paretovit"),
        written=data.written,
    )


def _policy(*scripts: str) -> str:
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _plotly() -> str:
    """plotly.js, as the plotly package brings it. A browser reads line ends as \\n, so its hash is taken of that."""
    from plotly.offline import get_plotlyjs

    return get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")


def _replace(path: Path, content: bytes) -> None:
    """Writes beside the target and renames, so that a reader sees the old file or the new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
