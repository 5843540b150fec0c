"""Numbers and architectures in words, the same on the command line, in the report and on the pages."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

_SCALED = ("params", "flops", "tokens", "activations")
_FRACTIONS = ("accuracy", "recall", "calibration_error")
_OURS = "paretovit_"


def number(quantity: str, value: float | None) -> str:
    """`value` of a quantity as text: fractions to 3 decimals, counts with k, M or G, the rest to 3 digits."""
    if value is None or not math.isfinite(value):
        return "–"
    if quantity in _FRACTIONS:
        return f"{value:.3f}"
    if quantity in _SCALED:
        return scaled(value)
    return significant(value)


def interval(quantity: str, bounds: tuple[float, float] | list[float] | None) -> str:
    """Both bounds as `0.906–0.963`; empty without an interval."""
    if bounds is None:
        return ""
    return f"{number(quantity, bounds[0])}–{number(quantity, bounds[1])}"


def significant(value: float, digits: int = 3) -> str:
    """Plain decimals with at least `digits` significant digits; never an exponent for what people read."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 12)}f}"


def scaled(value: float) -> str:
    """A count to three digits with k, M, G or T behind it: 12,345 is `12.3k`."""
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{significant(value / limit)}{suffix}"
    return significant(value) if value % 1 else f"{value:.0f}"


def duration(seconds: float | None) -> str:
    """`45 s`, `3 min 20 s`, `7 h 5 min`, `12 d 3 h`."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def moment(seconds: float | None) -> str:
    """A time of the database (UTC seconds since the epoch) as `2026-11-30 21:45:02 UTC`."""
    return "–" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def architecture(family: str, point: Mapping[str, Any], model: str) -> str:
    """A point of a space in one line, `patch_size=2, depth=4`; a model that is no point is its timm name."""
    parts = [
        f"{name.removeprefix(family + '.')}={plain(value)}"
        for name, value in point.items()
        if name != "family"
    ]
    return ", ".join(parts) or model


def rebuild(model: str, args: Mapping[str, Any], module: str | None = None) -> str:
    """A line of Python that builds the network again, with fresh weights, as it stands. `spaces.models` makes timm know
    the models of ours, and `module` those of the user's."""
    own = "spaces.models" if model.startswith(_OURS) else module
    modules = f"timm, {own}" if own else "timm"
    arguments = "".join(f", {name}={value!r}" for name, value in args.items())
    return f"import {modules}; timm.create_model({model!r}{arguments})"


def plain(value: Any) -> str:
    """A value of a dimension: lists joined by dashes, yes and no."""
    if isinstance(value, list | tuple):
        return "-".join(str(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


# What turns the direction of all that follows it, up to a sign that may never come.
_TURNING = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_HIDDEN = {ord(sign): "\ufffd" for sign in _TURNING} | {
    code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"
}


def for_pages(text: str) -> str:
    """`text` for a page: control characters, and those that would turn the words after it around, become visible."""
    return text.translate(_HIDDEN)


def printable(text: str) -> str:
    """`text` for a terminal: control characters, which could move its cursor or forge lines, become `?`."""
    return "".join(c if c.isprintable() else "?" for c in text)
