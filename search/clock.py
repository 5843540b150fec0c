"""The time, as what decides by it is told; simulations tell another."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """now: UTC seconds since the epoch. monotonic: seconds on a clock that nobody sets."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


CLOCK = Clock()
