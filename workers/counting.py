"""How many of something there are, in words. Standard library only."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 epoch`, `1,200 epochs`. many: where it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def interval(low: float, high: float, form: str = ".4g") -> str:
    """Both ends of an interval around a figure: `0.906–0.963`."""
    return f"{low:{form}}–{high:{form}}"


def plain(number: float) -> str:
    """A bound as it can be typed in: `100000000`, `0.01`, never `1e+08`."""
    return f"{number:.15g}"
