"""Commands of `paretovit` that the API runs in processes of their own: what they import never comes into this one, and
their checks and messages are those of the command line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence

from search.store.location import VARIABLE, Location

SECONDS = 600.0  # for the checks of a large data set
_SETS = "PARETOVIT_SET"
_STARTS = "paretovit: "


class Refused(Exception):
    """The command ended with an error. code: its exit code, 2 for what is wrong with what was asked."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


async def run(location: Location, arguments: Sequence[str], given: str = "") -> str:
    """What a command prints on a database. given: its standard input. Raises Refused."""
    environment = {name: value for name, value in os.environ.items() if name != _SETS}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # a module of the user's in the working folder must not stand in for ours
        "-m",
        "search.cli.main",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment | {VARIABLE: str(location.path or location.conninfo)},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate(given.encode())
    except TimeoutError:
        raise Refused(1, f"{arguments[0]} took over {SECONDS:g} s; try it on the command line") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode != 0:
        raise Refused(process.returncode or 1, _reason(err.decode("utf-8", "replace")))
    return out.decode("utf-8", "replace")


def _reason(errors: str) -> str:
    """The error that a command told at its end, without the program's name."""
    parts = ("\n" + errors.strip()).split("\n" + _STARTS)
    return parts[-1].strip() or "it failed, and said nothing"
