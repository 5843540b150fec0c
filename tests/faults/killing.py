"""Runs `paretovit` and kills it at a named boundary; as a plugin, kills a worker or breaks candidates.

As a program: killing.py BOUNDARY NTH ARGUMENT... runs `paretovit ARGUMENT...` and sends itself SIGKILL the NTH time
that it comes to BOUNDARY. As a plugin of workers it reads KILL_WORKER=BOUNDARY:NTH:FILE; FILE counts across workers.
`rename-both` and `renamed-both`, before and after a checkpoint's rename, kill the driver too. With BREAK_CANDIDATES
it breaks four candidates, each in one way.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(boundary: str, nth: int, arguments: list[str]) -> int:
    from search.cli.main import main as paretovit

    os.environ["KILL_DRIVER"] = str(os.getpid())
    if boundary != "none":
        _patch_driver(boundary, _countdown(nth))
    return paretovit(arguments)


def _patch_driver(boundary: str, strike: Callable[[], None]) -> None:
    from search.driver import Driver
    from search.ledger import Ledger
    from search.study import Study
    from workers.job import Job

    places: dict[str, tuple[Any, str, bool]] = {
        "ask": (Study, "ask", True),
        "dispatch": (Driver, "next_job", True),
        "outcome": (Driver, "finish", False),
        "commit": (Ledger, "after", False),
        "tell": (Study, "tell", True),
        "end": (Driver, "_end", False),
    }
    owner, name, after = places[boundary]
    original = getattr(owner, name)

    def patched(*args: Any, **kwargs: Any) -> Any:
        if not after:
            strike()
        result = original(*args, **kwargs)
        if after and (boundary != "dispatch" or isinstance(result, Job)):
            strike()
        return result

    setattr(owner, name, patched)


def _countdown(nth: int) -> Callable[[], None]:
    left = nth

    def strike() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return strike


def _patch_worker(boundary: str, nth: int, counter: Path) -> None:
    from workers import checkpoint, train

    def strike() -> None:
        with counter.open("a") as file:
            file.write("x")
        if counter.stat().st_size == nth:
            if boundary.endswith("-both"):
                os.kill(int(os.environ["KILL_DRIVER"]), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    if boundary == "epoch":
        backward = train.backward

        def struck_backward(*args: Any) -> Any:
            strike()
            return backward(*args)

        train.backward = struck_backward
        return
    replace = Path.replace

    def struck_replace(path: Path, target: Path) -> Path:
        if boundary != "renamed-both":
            strike()
        renamed = replace(path, target)
        if boundary == "renamed-both":
            strike()
        return renamed

    checkpoint.Path.replace = struck_replace  # pyright: ignore[reportAttributeAccessIssue]


def _break_candidates() -> None:
    """Trainings of candidates 1 to 4 raise, turn to NaN, ask for more memory than there is, and segfault."""
    import ctypes

    import torch

    from workers import train

    train_epoch = train._train_epoch

    def broken(job: Any, training: Any, *rest: Any) -> Any:
        if job.candidate == 1:
            raise ValueError("the layer does not like its input")
        if job.candidate == 2:
            with torch.no_grad():
                next(training.model.parameters()).fill_(float("nan"))
        if job.candidate == 3:
            torch.ones(2**50)
        if job.candidate == 4:
            ctypes.string_at(0)
        return train_epoch(job, training, *rest)

    train._train_epoch = broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
elif "BREAK_CANDIDATES" in os.environ:
    _break_candidates()
elif "KILL_WORKER" in os.environ:
    _boundary, _nth, _counter = os.environ["KILL_WORKER"].split(":", 2)
    _patch_worker(_boundary, int(_nth), Path(_counter))
