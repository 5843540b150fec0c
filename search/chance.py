"""Whether an accuracy says more than guessing does. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def remark(low: float | None, data: Mapping[str, Any]) -> str:
    """`not told apart from guessing one of 10 classes by its interval`; empty where it is, or where that is not known.
    low: of the accuracy's 95% interval. data: of the search, for the number of its classes."""
    num_classes = data.get("num_classes")
    if low is None or not num_classes or low > 1 / num_classes:
        return ""
    return f"not told apart from guessing one of {num_classes} classes by its interval"
