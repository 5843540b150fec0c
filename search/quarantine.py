"""Machines that fail jobs in a row, and get no more as long as another is left. Pure.

A machine is told by its host name, and what fails on it by the device. A quarantine ends with its driver: a search that
is resumed tries every machine again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

IN_A_ROW = 2
"""Jobs. One job that fails again and again may be its candidate's fault."""


@dataclass(frozen=True)
class Tried:
    """How an attempt at a job ended on a host. device: None where its worker died. trouble: what the machine failed it
    by; None where it did its work, whatever came out."""

    job: int
    host: str
    device: str | None
    trouble: str | None


@dataclass
class Quarantine:
    """hosts: that get no more jobs, and why. suspects: jobs that failed where there are several machines; others go
    first, so that they tell whose fault it was. _failed: by host and device, the jobs that failed there since the last
    that was done. _seen: by host, the device that its last report was from."""

    hosts: dict[str, str] = field(default_factory=dict)
    suspects: set[int] = field(default_factory=set)
    _failed: dict[tuple[str, str | None], set[int]] = field(default_factory=dict)
    _seen: dict[str, str] = field(default_factory=dict)

    def note(self, tried: Tried, hosts: Callable[[], Collection[str]]) -> str | None:
        """Takes in how an attempt ended. Returns in words that its host is in quarantine from now on, else None.

        hosts: gives those that jobs can go to. The last of them is never put in quarantine.
        """
        if tried.device is not None:
            self._seen[tried.host] = tried.device
        place = (tried.host, tried.device or self._seen.get(tried.host))
        if tried.trouble is None:
            self._failed.pop(place, None)
            self.suspects.discard(tried.job)
            return None
        failed = self._failed.setdefault(place, set())
        failed.add(tried.job)
        there = set(hosts()) - self.hosts.keys()
        if len(there) > 1:
            self.suspects.add(tried.job)
        if len(failed) < IN_A_ROW or tried.host not in there or len(there) == 1:
            return None
        self.hosts[tried.host] = tried.trouble
        device = f" ({place[1]})" if place[1] else ""
        return (
            f"{tried.host}{device} has failed {IN_A_ROW} jobs in a row and gets no more until the search is resumed: "
            f"{tried.trouble}"
        )

    def left(self, hosts: Collection[str]) -> int:
        """How many of these get jobs; at least the one that this driver is on."""
        return max(1, len(set(hosts) - self.hosts.keys()))
