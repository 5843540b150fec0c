"""`dashboard`: the pages and the REST API, in a browser on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from search.cli.options import Database


def dashboard(
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any free one.  [8770 or next]"),
    ] = None,
    db: Database = None,
) -> None:
    """Show searches in a browser, also while they run; prints the link to open."""
    from dashboards.server import serve

    def ready(url: str) -> None:
        print(f"ready {url}", flush=True)

    def warn(text: str) -> None:
        print(f"paretovit: {text}", file=sys.stderr, flush=True)

    serve(db, port, ready, warn)
