"""The guard inside a worker against hangs."""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

STDERR = 2


class Watchdog:
    """Ends the process, with all threads' tracebacks on stderr, once `seconds` go by without a beat.

    It runs on faulthandler's own C thread and so fires while the GIL is held or a kernel call hangs. The process
    exits with status 1 and without clean-up; its locks are freed by the system, the driver sees a lost worker. There
    is one such timer a process: use one Watchdog at a time.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Arming starts a thread (tens of microseconds): not every step of a fast loop needs one.
        self._rearm_after = min(0.5, seconds / 20)
        self._armed_at: float | None = None

    def __enter__(self) -> Watchdog:
        self._arm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cancel()

    def beat(self) -> None:
        """Work goes on: counts `seconds` anew (a beat within the last twentieth, or half a second, counts as one)."""
        if self._armed_at is not None and time.monotonic() - self._armed_at > self._rearm_after:
            self._arm()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """While waiting for others, who have guards of their own, silence is no hang."""
        self._cancel()
        try:
            yield
        finally:
            self._arm()

    def _arm(self) -> None:
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=STDERR)
        self._armed_at = time.monotonic()

    def _cancel(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._armed_at = None
