"""A new folder that appears complete under its name, or not at all. Standard library only."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workers.errors import ExportError

PARTIAL = ".paretovit-partial"
"""How the temporary folder's name ends: `.NAME.RANDOM.paretovit-partial`, beside the target."""


def check(target: Path) -> None:
    """Raises ExportError where `target` could not be made: it is a file, is not empty, is in use."""
    try:
        if target.exists() or target.is_symlink():
            if not target.is_dir():
                raise ExportError(f"{target}: is a file; give a folder that is new or empty")
            if any(target.iterdir()):
                raise ExportError(f"{target}: is not empty; give a folder that is new or empty")
            if target.is_mount() or target.samefile(Path()):
                raise ExportError(f"{target}: cannot be replaced while it is in use; give a folder inside it")
        above = next((folder for folder in target.absolute().parents if folder.exists()), target)
        if not above.is_dir():
            raise ExportError(f"{target}: {above} is a file; give another folder")
    except OSError as error:
        raise _unwritable(target, error) from error


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside `target` that becomes it at the end; on any error it vanishes.

    What a killed process leaves has a name that ends in PARTIAL, and stands in nobody's way. Folders above are made,
    and removed again on an error. Raises ExportError as `check` does, and for a target that cannot be written.
    """
    check(target)
    target = Path(os.path.realpath(target))
    made = _make_parents(target)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PARTIAL}")
    is_done = False
    try:
        with _naming(target):
            partial.mkdir()
            yield partial
            _flush(partial)
            partial.rename(target)
            _flush_entry(target.parent)
        is_done = True
    finally:
        if not is_done:
            shutil.rmtree(partial, ignore_errors=True)
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()


def _make_parents(target: Path) -> list[Path]:
    """The folders that had to be made, the innermost first."""
    missing = [folder for folder in target.parents if not folder.exists()]
    with _naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    return missing


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(target, error) from error


def _unwritable(target: Path, error: OSError) -> ExportError:
    return ExportError(f"{target}: cannot be written ({error.strerror or error}); give another folder")


def _flush(folder: Path) -> None:
    """Brings everything to the disk, readable for whom the folder is (safetensors keeps its files to the user)."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.iterdir():
        path.chmod(mode)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    _flush_entry(folder)


def _flush_entry(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot
            os.fsync(handle)
    finally:
        os.close(handle)
