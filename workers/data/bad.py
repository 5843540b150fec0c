"""Pictures that cannot be used: how many of them are put up with, and how they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.data.listing import DataError
from workers.data.pixels import REMEDY

_NAMED = 5


@dataclass(frozen=True)
class Bad:
    """One picture. fault: why it cannot be used."""

    path: Path | str
    fault: str


def refuse(bad: Sequence[Bad], max_bad: int) -> None:
    """Raises DataError naming the first ones, where there are more than are put up with."""
    if len(bad) <= max_bad:
        return
    first, *others = bad
    if max_bad:
        raise DataError(
            f"data.max_bad: {max_bad}: {len(bad)} images cannot be used: {named(bad)} (first: {first.fault}); "
            f"restore or remove them, or raise it"
        )
    if not others:
        raise DataError(f"{first.path}: {first.fault}; {REMEDY}, or leave it out with data.max_bad: 1")
    raise DataError(
        f"{first.path}: {first.fault}; nor can {len(others)} more be used: {named(others)}; restore or remove them, or "
        f"leave them out with data.max_bad: {len(bad)}"
    )


def note(bad: Sequence[Bad], max_bad: int) -> str:
    """What is said of those that are left out."""
    count = (
        "1 image that cannot be used is" if len(bad) == 1 else f"{len(bad)} images that cannot be used are"
    )
    return f"{count} left out (data.max_bad: {max_bad}): {named(bad)}"


def named(bad: Sequence[Bad]) -> str:
    """The paths of the first ones."""
    more = ", ..." if len(bad) > _NAMED else ""
    return ", ".join(str(one.path) for one in bad[:_NAMED]) + more
