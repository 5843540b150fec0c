"""The process that drives one queued search: how it is started, what it writes, how it is ended.

It is in a session of its own and writes to a file, so that it outlives the runner that has started it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from search.store.location import VARIABLE, Location

FOLDER = ".logs"
"""Below the folder of artifacts; no search has a name that begins with a dot."""

MOST_BYTES = 1_000_000
_KEPT_BYTES = 250_000
_SAID = re.compile(r"^paretovit: ", re.MULTILINE)
_MOST_SAID = 500


@dataclass(frozen=True)
class RunProcess:
    """One that this process has started. log: what it writes. begun: bytes that were there before."""

    process: subprocess.Popen[bytes]
    log: Path
    begun: int

    @property
    def code(self) -> int | None:
        """Of its exit, negative for a signal; None while it runs."""
        return self.process.poll()

    def said(self) -> str:
        """The error that it ended with, in its own words; empty without one."""
        with self.log.open("rb") as file:
            file.seek(self.begun)
            parts = _SAID.split(file.read().decode("utf-8", "replace"))
        text = parts[-1].strip() if len(parts) > 1 else ""
        return text if len(text) <= _MOST_SAID else text[: _MOST_SAID - 3] + "..."


def start(location: Location, artifacts_root: Path, name: str, row: int, claim: int) -> RunProcess:
    """Starts `search.cli.queued` for a row of the queue under a claim."""
    log = artifacts_root / FOLDER / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    begun = _shortened(log)
    with log.open("ab") as file:
        process = subprocess.Popen(
            # -P: a module of the user's in the working folder must not stand in for ours
            [sys.executable, "-P", "-m", "search.cli.queued", str(row), str(claim)],
            env=os.environ | {VARIABLE: str(location.path or location.conninfo)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return RunProcess(process, log, begun)


def _shortened(log: Path) -> int:
    """Bytes in a log, the oldest of which are taken away where they are too many."""
    if not log.exists():
        return 0
    if log.stat().st_size <= MOST_BYTES:
        return log.stat().st_size
    kept = log.read_bytes()[-_KEPT_BYTES:]
    log.write_bytes(kept[kept.find(b"\n") + 1 :])
    return log.stat().st_size
