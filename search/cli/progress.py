"""How a running search shows itself: lines on stderr, and on a terminal one line below them that stays."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.status import Status


class Progress(Protocol):
    """line: something happened. status: how far the search is."""

    def line(self, text: str) -> None: ...
    def status(self, text: str) -> None: ...


class Plain:
    """For files and pipes: lines with the time. One that nobody reads any more does not end the search."""

    def line(self, text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
            sys.stderr.flush()

    def status(self, text: str) -> None:
        """Nothing: a log needs no line that stays."""


class Terminal:
    """Lines above a spinner with the status. A terminal that has gone does not end the search."""

    def __init__(self, console: Console, spinner: Status) -> None:
        self._console = console
        self._spinner = spinner

    def line(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._console.print(f"[dim]{time.strftime('%H:%M:%S')}[/dim] {escape(text)}")

    def status(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._spinner.update(escape(text))


def _say_zone(progress: Progress) -> None:
    """Lines go by the clock on the wall, as deadlines do; what is stored and shown by `status` is UTC."""
    here = time.localtime()
    if here.tm_gmtoff:
        zone = f"{time.strftime('%Z', here)}, UTC{time.strftime('%z', here)}"
        progress.line(f"times before these lines are local ({zone}); those that status shows are UTC")


@contextmanager
def shown() -> Iterator[Progress]:
    """A rich display where stderr is a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        plain = Plain()
        _say_zone(plain)
        yield plain
        return
    console = Console(stderr=True, highlight=False)
    spinner = console.status("starting")
    with contextlib.suppress(OSError):
        spinner.start()
    try:
        terminal = Terminal(console, spinner)
        _say_zone(terminal)
        yield terminal
    finally:
        with contextlib.suppress(OSError):
            spinner.stop()
