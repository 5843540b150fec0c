"""The hours of the day in which a queued search may run: "22:00-07:00" by the clocks of the machine that runs it.

Pure. A time that the clocks skip counts as the moment after the gap, one that they show twice as the first of the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

FORM = "give HH:MM-HH:MM, for example 22:00-07:00"
_FORM = re.compile(r"([0-9]{1,2}):([0-9]{2})\s*-\s*([0-9]{1,2}):([0-9]{2})")


@dataclass(frozen=True)
class Window:
    """begin, end: minutes after midnight. One that ends before it begins goes over midnight."""

    begin: int
    end: int

    def __str__(self) -> str:
        return f"{_clock(self.begin)}-{_clock(self.end)}"

    def closes(self, now: float, zone: tzinfo | None = None) -> float | None:
        """When it ends if it is open now, both UTC seconds since the epoch; None while it is shut.

        zone: whose clocks count; None for this machine's.
        """
        return next((end for begin, end in self._openings(now, zone) if begin <= now < end), None)

    def opens(self, now: float, zone: tzinfo | None = None) -> float:
        """When it opens next, `now` where it is open."""
        return next(max(begin, now) for begin, end in self._openings(now, zone) if now < end)

    def _openings(self, now: float, zone: tzinfo | None) -> list[tuple[float, float]]:
        """Begin and end of those around `now`, in order; without one that a change of the clocks leaves nothing of."""
        midnight = datetime.fromtimestamp(now, zone).replace(
            hour=0, minute=0, second=0, microsecond=0, fold=0
        )
        found = []
        for days in (-1, 0, 1, 2):
            day = midnight + timedelta(days=days)
            ends = day + timedelta(days=self.end <= self.begin)
            opening = (_at(day, self.begin), _at(ends, self.end))
            if opening[0] < opening[1]:
                found.append(opening)
        return found


def parse(text: str) -> Window:
    """The window that a text names. Raises ValueError, with what would be right."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no window; {FORM}")
    hours, minutes = (int(found[1]), int(found[3])), (int(found[2]), int(found[4]))
    begin, end = (60 * hour + minute for hour, minute in zip(hours, minutes, strict=True))
    if max(minutes) > 59 or begin > 24 * 60 or end > 24 * 60:
        raise ValueError(f"{text!r} holds a time that no clock shows; {FORM}")
    if begin % (24 * 60) == end % (24 * 60):
        raise ValueError(f"{text!r} begins and ends at the same time; leave it out for the whole day")
    return Window(begin % (24 * 60), end % (24 * 60))


def _at(day: datetime, minutes: int) -> float:
    """The moment of a day's clock time."""
    return day.replace(hour=minutes // 60, minute=minutes % 60).timestamp()


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
