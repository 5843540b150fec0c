"""What can be asked of a search by the buttons of its page. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from search.states import SearchState
from search.store.read.rows import SearchRow

_PAUSE, _RESUME, _STOP, _NOW, _DELETE = "pause", "resume", "stop", "stop-now", "delete"
_OFFERED = {
    SearchState.QUEUED: (_STOP,),
    SearchState.RUNNING: (_PAUSE, _STOP),
    SearchState.DRAINING: (_RESUME, _NOW),
    SearchState.PAUSED: (_RESUME, _STOP, _DELETE),
    SearchState.INTERRUPTED: (_RESUME, _STOP, _DELETE),
    SearchState.STOPPED: (_RESUME, _DELETE),
    SearchState.FINISHED: (_DELETE,),
    SearchState.FAILED: (_DELETE,),
}
_LABELS = {_PAUSE: "Pause", _RESUME: "Resume", _STOP: "Stop", _NOW: "Stop now", _DELETE: "Delete"}


@dataclass(frozen=True)
class Actions:
    """offered: (what, label) of the buttons, in order. place: where the search is in the queue, in words; empty where
    it is not."""

    offered: tuple[tuple[str, str], ...]
    place: str


def waits(place: Mapping[str, Any] | None) -> bool:
    """Whether a search goes on by itself. place: as `search.waiting` gives it."""
    return place is not None and place["state"] == "waiting" and not place["held"]


def of(search: SearchRow, place: Mapping[str, Any] | None) -> Actions:
    """place: as `search.waiting` gives it."""
    offered = _OFFERED[search.state]
    if waits(place) and search.state in (SearchState.PAUSED, SearchState.INTERRUPTED):
        offered = (_PAUSE, _STOP)  # it goes on by itself
    return Actions(tuple((what, _LABELS[what]) for what in offered), "" if place is None else words(place))


def words(place: Mapping[str, Any]) -> str:
    """`In the queue with priority 5, from 22:00 to 07:00; 2 before it.`"""
    text = f"In the queue with priority {place['priority']}"
    if place["window"]:
        text += f", from {place['window'].replace('-', ' to ')}"
    if place["held"]:
        return f"{text}; held until it is resumed."
    if place["before"] is not None:
        before = place["before"]
        text += "; next" if before == 0 else f"; {before} before it"
    return f"{text}."
