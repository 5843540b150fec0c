"""What a manifest notices. The files hold text here: what they mean plays no part."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from workers.bundle import manifest
from workers.errors import ExportError

FACTS = {"search": "flowers", "values": {"accuracy": 0.1 + 0.2, "params": 3}, "name": "caf\u00e9 \udcff"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    for name in (*manifest.REQUIRED, *manifest.OPTIONAL):
        (made / name).write_text(f"content of {name}\n" * 3)
    manifest.write(made, FACTS)
    return made


def refusal(folder: Path) -> str:
    with pytest.raises(ExportError) as found:
        manifest.check(folder)
    return str(found.value)


def test_what_was_written_checks_out_and_its_facts_come_back(folder: Path) -> None:
    found = manifest.check(folder)
    assert found.facts == FACTS
    assert found.files.keys() == manifest.REQUIRED | manifest.OPTIONAL


@pytest.mark.parametrize("place", [0.0, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("name", [*sorted(manifest.REQUIRED | manifest.OPTIONAL), manifest.NAME])
def test_a_changed_bit_is_noticed_and_its_file_named(folder: Path, name: str, place: float) -> None:
    path = folder / name
    content = bytearray(path.read_bytes())
    for bit in range(8):
        changed = bytearray(content)
        changed[round(place * (len(content) - 1))] ^= 1 << bit
        path.write_bytes(changed)
        assert f"{name} " in refusal(folder)
    path.write_bytes(content)
    manifest.check(folder)


def test_every_byte_of_the_manifest_is_covered(folder: Path) -> None:
    path = folder / manifest.NAME
    content = path.read_bytes()
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        path.write_bytes(changed)
        assert manifest.NAME in refusal(folder), position


@pytest.mark.parametrize(
    "change", [lambda b: b + b"\n", lambda b: b[:-1], lambda b: b"", lambda b: b[: len(b) // 2]]
)
@pytest.mark.parametrize("name", ["README.md", "model.safetensors", manifest.NAME])
def test_a_file_that_grew_or_was_cut_is_noticed(folder: Path, name: str, change) -> None:
    path = folder / name
    path.write_bytes(change(path.read_bytes()))
    assert f"{name} has changed" in refusal(folder)


@pytest.mark.parametrize("name", [*sorted(manifest.REQUIRED | manifest.OPTIONAL), manifest.NAME])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"{name} is missing" in refusal(folder)


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "torch.py", "model.safetensors.bak"])
def test_an_additional_file_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("")
    assert f"{name} is no part of the export" in refusal(folder)


def test_what_python_leaves_behind_is_named_with_its_remedy(folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    assert "__pycache__ is no part of the export (Python made it" in refusal(folder)


def test_all_that_is_wrong_is_in_one_line(folder: Path) -> None:
    (folder / "spec.json").write_text("{}")
    (folder / "model.onnx").unlink()
    (folder / "a\nb").touch()
    said = refusal(folder)
    assert len(said.splitlines()) == 1
    for words in ("spec.json has changed", "model.onnx is missing", r"'a\nb' is no part"):
        assert words in said


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_only_plain_files_count(folder: Path, tmp_path: Path, kind: str) -> None:
    path = folder / "spec.json"
    if kind == "link":
        path.rename(tmp_path / "elsewhere.json")
        path.symlink_to(tmp_path / "elsewhere.json")
    else:
        path.unlink()
        path.mkdir() if kind == "folder" else os.mkfifo(path)
    assert "spec.json is no plain file" in refusal(folder)


def test_names_in_a_manifest_lead_nowhere(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    path = folder / manifest.NAME
    files = json.loads(path.read_text())["files"] | {"../secret": {"sha256": "0" * 64, "num_bytes": 1}}
    path.write_text(manifest.Manifest(files, FACTS).text())
    assert "../secret is no part of the export" in refusal(folder)


def test_a_manifest_that_leaves_a_file_out_does_not_pass(folder: Path) -> None:
    path = folder / manifest.NAME
    files = json.loads(path.read_text())["files"]
    del files["README.md"]
    path.write_text(manifest.Manifest(files, FACTS).text())
    assert "README.md is no part of the export" in refusal(folder)
    (folder / "README.md").unlink()
    assert "README.md is missing" in refusal(folder)


def test_another_format_is_told_from_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "FORMAT", 2)
    assert "manifest.json is of format 1, and this paretovit reads 2" in refusal(folder)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[]",
        "null",
        '{"format": 1}',
        '{"format": 1, "sha256": 1, "files": []}',
        '{"format": Infinity, "sha256": 1, "files": {}}',
        '{"format": 1, "sha256": 1, "files": {}, "epochs": 1e999}',
        '{"format": 1, "sha256": 1, "files": {"spec.json": 3}}',
        '{"format": ' + "9" * 5000 + "}",
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_manifest_has_changed(folder: Path, text: str) -> None:
    (folder / manifest.NAME).write_text(text)
    assert f"{manifest.NAME} has changed" in refusal(folder)


def test_a_manifest_of_any_length_is_not_read_to_its_end(folder: Path) -> None:
    with (folder / manifest.NAME).open("r+b") as file:
        file.truncate(2**40)
    assert f"{manifest.NAME} has changed" in refusal(folder)


def test_what_is_no_export_says_so(tmp_path: Path) -> None:
    assert "there is no such folder" in refusal(tmp_path / "none")
    (tmp_path / "file").touch()
    assert "is no folder" in refusal(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert "manifest.json is missing, so this is no complete export" in refusal(tmp_path / "empty")
