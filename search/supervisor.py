"""Keeps a few processes of ours running beside each other, so that none takes another down with it.

One that dies is started again, at first soon and then more slowly; one that dies too often is left down, and the others
go on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

SUPERVISED = "PARETOVIT_SUPERVISED"
"""Set for children: when their standard input ends, whoever has started them is gone."""

MOST_DEATHS = 5
WITHIN_SECONDS = 600.0
STEP_SECONDS = 0.2


@dataclass
class Child:
    """One process. arguments: makes those of `paretovit`. variables: added to its environment. said: called with each
    line of its output."""

    name: str
    arguments: Callable[[], Sequence[str]]
    variables: Mapping[str, str] = field(default_factory=dict)
    said: Callable[[str], None] = lambda _: None
    process: subprocess.Popen[str] | None = None
    deaths: deque[float] = field(default_factory=deque)
    not_before: float = 0.0
    given_up: bool = False

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "search.cli.main", *self.arguments()],
            env=os.environ | dict(self.variables) | {SUPERVISED: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C in the terminal is for the supervisor alone, which passes it on
        )
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.said(line.rstrip("\n"))

    def let_go(self) -> None:
        """Shuts the pipe by which a child knows that its supervisor is there."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def died(self, now: float) -> None:
        """Notes a death, and when it may be started again."""
        self.deaths.append(now)
        while self.deaths and now - self.deaths[0] > WITHIN_SECONDS:
            self.deaths.popleft()
        self.let_go()
        self.process = None
        self.given_up = len(self.deaths) >= MOST_DEATHS
        self.not_before = now + 2.0 ** (len(self.deaths) - 1) - 1.0


class Supervisor:
    """Runs its children until a signal, or until none is left. warn: told what goes wrong."""

    def __init__(self, children: Sequence[Child], warn: Callable[[str], None]) -> None:
        self._children = children
        self._warn = warn
        self._signals = 0

    def run(self) -> int:
        """The exit code: 0 after a signal, 1 where every child has been given up."""
        before = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            while not self._signals and not all(child.given_up for child in self._children):
                self._step(time.monotonic())
                time.sleep(STEP_SECONDS)
            self._end()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return 0 if self._signals else 1

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._signals += 1

    def _step(self, now: float) -> None:
        for child in self._children:
            if child.process is not None and child.process.poll() is not None:
                code = child.process.returncode
                child.died(now)
                what = "it is left down" if child.given_up else "it is started again"
                self._warn(f"the {child.name} ended with {code}; {what}")
            if child.process is None and not child.given_up and now >= child.not_before:
                child.start()

    def _end(self) -> None:
        """Passes signals on until all children have ended."""
        passed = 0
        while running := [
            c.process for c in self._children if c.process is not None and c.process.poll() is None
        ]:
            if passed < max(self._signals, 1):
                passed += 1
                for process in running:
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(signal.SIGTERM)
            time.sleep(STEP_SECONDS)
        for child in self._children:
            child.let_go()
