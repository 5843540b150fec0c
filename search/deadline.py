"""When a search has to end: "07:00", "8h", "1h30m" or ISO 8601 -> UTC seconds since the epoch."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo

FORMS = 'give "HH:MM", a duration such as 8h or 1h30m, or an ISO 8601 date and time'

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_DURATION = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s)?")
_UNITS = (86_400, 3_600, 60, 1)
_LONGEST = 366 * 86_400


def resolve(text: str, now: float, zone: tzinfo | None = None) -> float:
    """UTC seconds since the epoch of the deadline `text`, seen at `now` (UTC seconds since the epoch).

    "HH:MM" is the next time that clocks in `zone` (None: this machine's) show it; an ISO 8601 time without an
    offset is of `zone` too. Raises ValueError for other forms, for what is past and for over a year ahead.
    """
    seconds = _parse(text.strip(), now, zone)
    if seconds <= now:
        raise ValueError(f"{text!r} is past; {FORMS}")
    if seconds - now > _LONGEST:
        raise ValueError(f"{text!r} is over a year ahead")
    return seconds


def check_form(text: str) -> None:
    """Raises ValueError when `text` has none of the forms; whether it is past is not looked at."""
    _parse(text.strip(), 0.0, None)


def _parse(text: str, now: float, zone: tzinfo | None) -> float:
    if clock := _CLOCK.fullmatch(text):
        return _next(int(clock[1]), int(clock[2]), text, now, zone)
    duration = _DURATION.fullmatch(text)
    if text and duration:
        return now + sum(
            int(count or 0) * unit for count, unit in zip(duration.groups(), _UNITS, strict=True)
        )
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is no deadline; {FORMS}") from None


def _next(hour: int, minute: int, text: str, now: float, zone: tzinfo | None) -> float:
    if hour > 23 or minute > 59:
        raise ValueError(f"{text!r} is no time of day; {FORMS}")
    today = datetime.fromtimestamp(now, zone).replace(hour=hour, minute=minute, second=0, microsecond=0)
    moment = today if today.timestamp() > now else today + timedelta(days=1)
    return moment.timestamp()
