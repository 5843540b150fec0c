"""What pydantic found, in the user's words: key, value, remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from search.config_yaml import KeyPath, Origins, dotted, shown
from search.errors import UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError

_ALIKE = 0.65
"""Share of letters that two words have in common, in order, from which one may be meant for the other: `vti` is near
`vit`, `foo` is near nothing."""

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_NEEDED = {
    "bool_type": "true or false",
    "dataclass_type": "`key: value` lines",
    "dict_type": "`key: value` lines",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "`key: value` lines",
    "string_type": "text",
    "tuple_type": "a list",
}
_NOT_BUILT: dict[KeyPath, str] = {
    ("finalists", "seeds"): "finalists are not built yet; remove it",
    ("finalists", "evaluate"): "finalists are not built yet; remove it",
}
_SAYS_ITS_KEY = re.compile(r"([A-Za-z_][\w-]*(?:\.[\w-]+)*): (.*)", re.DOTALL)


def usage_error(error: ValidationError, origins: Origins, keys: Mapping[str, Collection[str]]) -> UsageError:
    """One or two lines: the first two mistakes in the order of the file.

    keys: section -> its keys, with "" for the top level; used to name the nearest key.
    """
    found = [_described(details, keys) for details in error.errors(include_url=False)]
    found = sorted(dict(found).items(), key=lambda mistake: _line(mistake[0], origins))
    lines = [origins.message(path, text) for path, text in found[:2]]
    if len(found) > 2:
        lines[1] += f" (and {len(found) - 2} more)"
    return UsageError("\n".join(lines))


def nearest(word: str, known: Collection[str]) -> str:
    """`nearest: epochs`, or `known: ...` where nothing is near."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=_ALIKE)
    return f"nearest: {close[0]}" if close else f"known: {', '.join(known)}"


def _described(details: Any, keys: Mapping[str, Collection[str]]) -> tuple[KeyPath, str]:
    path, text = _in_words(details, keys)
    return path, _NOT_BUILT.get(path[:2], text)


def _in_words(details: Any, keys: Mapping[str, Collection[str]]) -> tuple[KeyPath, str]:
    path: KeyPath = details["loc"]
    kind, value = details["type"], details["input"]
    if kind in _UNKNOWN:
        return path, _unknown(path, keys)
    if kind == "missing":
        return path, "is missing, and has no default"
    if kind == "value_error":
        text = details["msg"].removeprefix("Value error, ")
        if named := _SAYS_ITS_KEY.fullmatch(text):
            return (*path, *named[1].split(".")), named[2]
        return path, text
    if kind == "literal_error":
        choices = details["ctx"]["expected"].replace(" or ", ", ").replace("'", "")
        return path, f"{shown(value)} is none of {choices}"
    if kind in _NEEDED:
        hint = "; put it in quotes" if kind == "string_type" and isinstance(value, int | float) else ""
        return path, f"needs {_NEEDED[kind]}, not {shown(value)}{hint}"
    return path, f"{shown(value)}: {details['msg']}"


def _unknown(path: KeyPath, keys: Mapping[str, Collection[str]]) -> str:
    key = str(path[-1])
    section = next(
        (dotted(path[:end]) for end in range(len(path) - 1, 0, -1) if dotted(path[:end]) in keys), ""
    )
    for other, known in keys.items():
        if key in known and other not in ("", section):
            return f"unknown key here; it belongs in {other}: {other}.{key}"
    return f"unknown key; {nearest(key, keys.get(section, ()))}"


def _line(path: KeyPath, origins: Origins) -> int:
    for end in range(len(path), 0, -1):
        if path[:end] in origins.lines:
            return origins.lines[path[:end]] or 0
    return 1_000_000
