"""The manifest of an exported folder: every file with its SHA-256, itself included. Standard library only.

A manifest shows that nothing was changed by accident. It does not show who wrote a folder: whoever can write all of
its files can write a manifest that fits them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.errors import ExportError

NAME = "manifest.json"
FORMAT = 1
MAX_TEXT_BYTES = 1_000_000
"""Of a file that is read before anything of the folder is believed; a manifest and a spec have some thousand."""

CARD, MODELING, ONNX = "README.md", "modeling.py", "model.onnx"
SPEC, PREPROCESSING = "spec.json", "preprocessing.json"
WEIGHTS, SAMPLE = "model.safetensors", "sample.safetensors"
REQUIRED = frozenset({CARD, MODELING, SPEC, PREPROCESSING, WEIGHTS, SAMPLE})
OPTIONAL = frozenset({ONNX})


@dataclass(frozen=True)
class Manifest:
    """files: name -> {"sha256", "num_bytes"}. facts: what was exported, by whom, when; plain JSON."""

    files: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, Any]

    def text(self) -> str:
        """The file, whose last line is the SHA-256 of all before it."""
        content = {
            "format": FORMAT,
            **self.facts,
            "files": {name: dict(self.files[name]) for name in sorted(self.files)},
        }
        return _text(content | {"sha256": _digest(content)})


def write(folder: Path, facts: Mapping[str, Any]) -> Manifest:
    """Adds the manifest of what is in `folder`, the last file to be written. Raises OSError."""
    assert not {"format", "files", "sha256"} & facts.keys()
    manifest = Manifest({path.name: _entry(path) for path in folder.iterdir()}, facts)
    (folder / NAME).write_text(manifest.text(), encoding="ascii")
    return manifest


def check(folder: Path) -> Manifest:
    """Compares every file of a folder with the manifest; nothing of them is used before.

    Raises ExportError naming each file that has changed, is missing, or is no part of an export.
    """
    names = _names(folder)
    manifest = _read(folder)
    expected = names | REQUIRED | manifest.files.keys()
    problems = (_problem(folder, name, name in names, manifest) for name in sorted(expected - {NAME}))
    found = [problem for problem in problems if problem is not None]
    if found:
        raise ExportError(f"{folder}: {'; '.join(found)}")
    return manifest


def text_of(path: Path) -> str:
    """A small file of UTF-8. Raises OSError, and ValueError where it is large or no such text."""
    with path.open("rb") as file:
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise ValueError(f"more than {MAX_TEXT_BYTES:,} bytes")
    return content.decode("utf-8")


def _names(folder: Path) -> set[str]:
    if not folder.is_dir():
        raise ExportError(f"{folder}: {'is no folder' if folder.exists() else 'there is no such folder'}")
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise ExportError(f"{folder}: cannot be read ({error.strerror})") from error
    if NAME not in names:
        raise ExportError(
            f"{folder}: {NAME} is missing, so this is no complete export; export the model again"
        )
    return names


def _read(folder: Path) -> Manifest:
    """Byte by byte what `write` writes, or nothing. What it says of files is not believed beyond their digests."""
    path = folder / NAME
    changed = ExportError(f"{folder}: {NAME} has changed since it was written")
    try:
        text = text_of(path) if _is_plain(path) else ""
        content = json.loads(text)
        version = content.pop("format")
        content.pop("sha256")
        files = {name: dict(entry) for name, entry in content.pop("files").items()}
        manifest = Manifest(files, content)
        is_unchanged = manifest.text() == text and version == FORMAT
    except OSError as error:
        raise ExportError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise changed from error
    if version != FORMAT and isinstance(version, int):
        raise ExportError(
            f"{folder}: {NAME} is of format {version}, and this paretovit reads {FORMAT}; use the one that wrote it"
        )
    if not is_unchanged:
        raise changed
    return manifest


def _problem(folder: Path, name: str, is_there: bool, manifest: Manifest) -> str | None:
    """What is wrong with one file, or None."""
    path, entry = folder / name, manifest.files.get(name)
    shown = name if name.isprintable() else repr(name)
    if name not in REQUIRED | OPTIONAL or (is_there and entry is None):
        hint = " (Python made it as modeling.py was imported; remove it)" if name == "__pycache__" else ""
        return f"{shown} is no part of the export{hint}"
    if not is_there:
        return f"{shown} is missing"
    if not _is_plain(path):
        return f"{shown} is no plain file"
    try:
        found = _entry(path)
    except OSError as error:
        return f"{shown} cannot be read ({error.strerror})"
    return None if found == entry else f"{shown} has changed since it was exported"


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _entry(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return {"sha256": sha256, "num_bytes": file.tell()}


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(content).encode("ascii")).hexdigest()


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, allow_nan=False) + "\n"
