"""What a training began from, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST_NAMES = 3


def words(loaded: Mapping[str, Any]) -> str:
    """One line about the `weights` of an Outcome's notes: of `workers.pretrained.Loaded`, or of
    `workers.inheritance.Inherited`."""
    known = [str(loaded["data"])] if "data" in loaded else []
    known += [f"{loaded['image_size']} px"] if "image_size" in loaded else []
    known.append(f"SHA-256 {loaded['sha256'][:12]}")
    parts = _shares(loaded) if "share" in loaded else []
    text = f"began from {'parts of ' if parts else ''}{loaded['name']} ({', '.join(known)})"
    parts += [f"{kept} of {there} {name}" for name, (kept, there) in loaded.get("blocks", {}).items()]
    parts += [f"{what} {_names(loaded[key])}" for key, what in _NAMED.items() if key in loaded]
    return f"{text}: {'; '.join(parts)}" if parts else text


_NAMED = {"widened": "widened", "resampled": "resampled", "fresh": "fresh", "left_out": "left out"}


def _shares(inherited: Mapping[str, Any]) -> list[str]:
    """How much is the source's, and how it was taken."""
    counts = [("whole", inherited.get("num_whole", 0)), ("sliced", len(inherited.get("sliced", ())))]
    told = ", ".join(f"{count} tensors {how}" for how, count in counts if count)
    return [f"{inherited['share']:.0%} of its parameters" + (f" ({told})" if told else "")]


def _names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
