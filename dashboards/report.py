"""The report: a whole search in one HTML file that needs no network and no server.

Its figures, the page's script and plotly.js are embedded. A content security policy lets only those scripts run that
were embedded here, by their hashes, so that nothing stored in a database can become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from dashboards import words
from dashboards.figures import curves, front, palette
from dashboards.report_context import context
from dashboards.report_data import ReportData, load
from search.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from search.store.reader import Reader

_HERE = Path(__file__).parent


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


def render(data: ReportData) -> str:
    """The report as HTML text."""
    front_info = front.front_info(data.points, data.axes, data.objectives)
    curves_info = curves.curves_info(data.points, data.scores, data.rungs, front_info.x)
    plotly, script = Markup(_plotly()), Markup(_static("report.js"))
    return (
        _environment()
        .get_template("report.html")
        .render(
            context(data, front_info, curves_info),
            wide={name: front.is_wide(front_info, name) for name in front_info.axes},
            csp=_policy(plotly, script),
            css=Markup(_static("report.css")),
            plotly=plotly,
            script=script,
            data=_embedded(_page_data(data, front_info, curves_info)),
            version=version("paretovit"),
            written=words.moment(data.written),
        )
    )


def _page_data(
    data: ReportData, front_info: front.FrontInfo, curves_info: curves.CurvesInfo
) -> dict[str, Any]:
    """What the page's script works with."""
    return {
        "name": data.search.name,
        "objectives": list(front_info.objectives),
        "axes": {
            name: {
                "label": axis.label,
                "title": axis.title,
                "direction": axis.direction,
                "limit": axis.limit,
                "wide": front.is_wide(front_info, name),
            }
            for name, axis in front_info.axes.items()
        },
        "points": {
            point.key: {
                "group": point.group,
                "values": dict(point.values),
                "intervals": {name: list(bounds) for name, bounds in point.intervals.items()},
            }
            for point in front_info.points
        },
        "strip": front.STRIP_DOMAIN,
        "limitShape": {key: front.limit_shape(theme) for key, theme in palette.THEMES.items()},
        "figures": {
            key: {"front": front.draw(front_info, theme), "curves": curves.draw(curves_info, theme)}
            for key, theme in palette.THEMES.items()
        },
    }


def _embedded(value: Any) -> Markup:
    """JSON that can stand in a script element: no `<`, so no end tag and no comment, whatever the strings hold."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


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


def _static(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


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
