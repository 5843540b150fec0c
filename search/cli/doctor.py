"""`paretovit doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from search.cli.options import Database


def doctor(
    db: Database = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Also start and stop Ray, which takes some seconds.")
    ] = False,
    weights_dir: Annotated[
        Path | None, typer.Option("--weights-dir", help="Folder of pretrained weights to look into.")
    ] = None,
) -> None:
    """Check this machine: packages, database, disk, devices and weights, and say what to do."""
    from search.doctor import examine

    problems = 0
    for finding in examine(db, None if weights_dir is None else str(weights_dir), start_ray=ray):
        is_problem = finding.remedy is not None and finding.is_problem
        problems += is_problem
        mark = "PROBLEM" if is_problem else "ok" if finding.remedy is None else "without"
        print(f"{mark:8} {finding.subject:15} {finding.text}", flush=True)
        if finding.remedy is not None:
            print(f"{'':8} {'':15} do: {finding.remedy}", flush=True)
    if problems:
        raise typer.Exit(1)
