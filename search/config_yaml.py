"""YAML as plain data, with the line that every key stands on.

Reads the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema), so that `no`, `10:30` and
dates stay text and `1e-3` is a number. Refused: tags, anchors, aliases, duplicate keys, NaN and infinities.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from search.errors import UsageError

KeyPath = tuple[str | int, ...]

_MAX_CHARACTERS = 200_000
_MAX_DEPTH = 16
_MAX_DIGITS = 18
_LONGEST_KEY = 120
_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


@dataclass(frozen=True)
class Origins:
    """Where each key was written. name: the file, as the user named it. lines: of each None for `--set`.

    Two configs that say the same are equal wherever it was written, so the contents do not take part in `==`.
    """

    name: str = field(default="config", compare=False)
    lines: Mapping[KeyPath, int | None] = field(default_factory=dict, compare=False)

    def message(self, path: KeyPath, text: str) -> str:
        """`search.yaml:12: training.epochs: text`, with the line of the nearest key that has one."""
        key = dotted(path)
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:
                line = self.lines[path[:end]]
                return f"--set {key}: {text}" if line is None else f"{self.name}:{line}: {key}: {text}"
        return f"{self.name}: {key}: {text}" if key else f"{self.name}: {text}"


@dataclass(frozen=True)
class Document:
    """A mapping of plain values and where each of them was written."""

    values: dict[str, Any]
    origins: Origins


def dotted(path: KeyPath) -> str:
    """`space.vit.patch_size[1]`: a key path as it is written for the user."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read(path: str | Path) -> Document:
    """The document in a file. Raises UsageError when it is no readable mapping of plain values."""
    try:
        with open(path, "rb") as file:
            content = file.read(4 * _MAX_CHARACTERS + 1)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file; `paretovit init` writes one") from None
    except IsADirectoryError:
        raise UsageError(f"{path}: is a folder; name the YAML file") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UsageError(f"{_plain(str(path))}: cannot be read: {_one_line(reason)}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8 text") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Document:
    """The document in a text; `name` stands before every error. Raises UsageError."""
    node = _compose(text, name)
    if node is None or (isinstance(node, yaml.ScalarNode) and _NULL.fullmatch(node.value)):
        raise UsageError(f"{name}: is empty; `paretovit init` writes a config to start from")
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(f"{_at(name, _line(node))}: needs `key: value` lines")
    lines: dict[KeyPath, int | None] = {}
    values = _value(node, (), Origins(name, lines), lines)
    return Document(values, Origins(name, lines))


def override(document: Document, assignment: str) -> Document:
    """A copy with one `a.b=value` applied, the value being YAML. Raises UsageError."""
    key, equals, text = assignment.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise UsageError(
            f"--set {_plain(assignment)}: needs the form key=value, for example training.epochs=9"
        )
    if problem := next(filter(None, map(_no_key, parts)), None):
        raise UsageError(f"--set: {problem}")
    path: KeyPath = tuple(parts)
    lines: dict[KeyPath, int | None] = {
        known: line for known, line in document.origins.lines.items() if known[: len(path)] != path
    }
    lines[path] = None
    node = _compose(text, f"--set {key.strip()}")
    value = None if node is None else _value(node, path, Origins(document.origins.name, lines), {})
    return Document(_replaced(document.values, path, path, value), Origins(document.origins.name, lines))


def _replaced(values: Any, path: Sequence[str | int], whole: KeyPath, value: Any) -> dict[str, Any]:
    if values is not None and not isinstance(values, dict):
        outer = dotted(whole[: len(whole) - len(path)])
        raise UsageError(f"--set {dotted(whole)}: {outer} is {shown(values)}, which holds no keys")
    inner = dict(values or {})
    head = str(path[0])
    inner[head] = value if len(path) == 1 else _replaced(inner.get(head), path[1:], whole, value)
    return inner


def shown(value: Any) -> str:
    """A value as it is repeated in an error: one line, at most 60 characters."""
    text = (
        "true" if value is True else "false" if value is False else "null" if value is None else repr(value)
    )
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(text: str) -> str:
    return text if text.isprintable() and len(text) <= 60 else shown(text)


def _compose(text: str, name: str) -> yaml.Node | None:
    if len(text) > _MAX_CHARACTERS:
        raise UsageError(f"{name}: holds over {_MAX_CHARACTERS:,} characters; is it the right file?")
    try:
        _refuse_what_is_not_plain(text, name)
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = _at(name, mark.line + 1) if mark else name
        raise UsageError(
            f"{where}: is not valid YAML: {_one_line(error.problem or error.context or '')}"
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UsageError(f"{_at(name, line)}: holds a character that YAML does not allow") from None


def _refuse_what_is_not_plain(text: str, name: str) -> None:
    """Checked on the event stream, before any node is built: an alias is never expanded."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        problem = None
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            problem = "YAML anchors (&) and aliases (*) are not allowed; write the value out"
        elif getattr(event, "tag", None) is not None:
            problem = f"the YAML tag {shown(getattr(event, 'tag', ''))} is not allowed; remove it"
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                problem = f"is nested over {_MAX_DEPTH} levels deep"
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                problem = "a second YAML document starts here; keep one"
        if problem:
            raise UsageError(f"{_at(name, event.start_mark.line + 1)}: {problem}")


def _value(node: yaml.Node, path: KeyPath, origins: Origins, lines: dict[KeyPath, int | None]) -> Any:
    """Fills `lines` for every key below `path`; `origins` may look at the same mapping."""
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, path, origins)
    if isinstance(node, yaml.SequenceNode):
        values = []
        for index, item in enumerate(node.value):
            lines[*path, index] = _line(item)
            values.append(_value(item, (*path, index), origins, lines))
        return values
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise UsageError(f"{_at(origins.name, _line(key_node))}: a key needs to be a plain word")
        key = key_node.value
        if problem := _no_key(key):
            raise UsageError(f"{_at(origins.name, _line(key_node))}: {problem}")
        here = (*path, key)
        lines[here] = _line(key_node)
        if key in mapping:
            raise UsageError(origins.message(here, "is given twice; remove one"))
        mapping[key] = _value(value_node, here, origins, lines)
    return mapping


def _scalar(node: yaml.ScalarNode, path: KeyPath, origins: Origins) -> str | int | float | bool | None:
    text: str = node.value
    if node.style is not None:
        return _text(text, path, origins)
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        if len(text.lstrip("+-0")) > _MAX_DIGITS:
            raise UsageError(origins.message(path, "the number is too large"))
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text.replace(".i", "i").replace(".I", "i").replace(".n", "n").replace(".N", "n"))
        if not math.isfinite(number):
            raise UsageError(origins.message(path, f"{text} is not a number to use"))
        return number
    return _text(text, path, origins)


def _text(text: str, path: KeyPath, origins: Origins) -> str:
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise UsageError(origins.message(path, f"{shown(text)} holds a control character"))
    return text


def _no_key(key: str) -> str | None:
    """Why a text cannot be a key. Keys are printed as they stand, so that nothing in them may act on a terminal."""
    if not key.isprintable():
        return f"the key {shown(key)} holds a character that does not print; write it plainly"
    if len(key) > _LONGEST_KEY:
        return f"the key {shown(key)} is longer than a key can be"
    return None


def _at(name: str, line: int) -> str:
    return name if name.startswith("--set ") else f"{name}:{line}"


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _one_line(text: str) -> str:
    return " ".join(text.split())
