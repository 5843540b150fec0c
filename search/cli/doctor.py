"""`paretovit doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from search.cli.options import Database


def doctor(
    db: Database = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Also start and stop Ray, which takes some seconds.")
    ] = False,
) -> None:
    """Check this machine: packages, database, disk and devices, and say what to do."""
    from search.doctor import examine

    problems = 0
    for finding in examine(db, start_ray=ray):
        mark = "ok" if finding.remedy is None else "PROBLEM"
        print(f"{mark:8} {finding.subject:12} {finding.text}", flush=True)
        if finding.remedy is not None:
            problems += 1
            print(f"{'':8} {'':12} do: {finding.remedy}", flush=True)
    if problems:
        raise typer.Exit(1)
