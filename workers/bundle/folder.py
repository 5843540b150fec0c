"""A new folder that appears complete under its name, or not at all. Standard library only."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workers.errors import ExportError
from workers.files import sync_folder

PARTIAL = ".paretovit-partial"
"""How the temporary folder's name ends: `.NAME.HOST.RANDOM.paretovit-partial`, beside the target. While its export
lives it is locked (`flock`). HOST: hexadecimal digits, because not every file system shows locks to other hosts."""


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

    What a killed process leaves has a name that ends in PARTIAL, stands in nobody's way, and is removed by the next
    export to the same target from the same host. Folders above are made, and removed again on an error. Raises
    ExportError as `check` does, and for a target that cannot be written.
    """
    check(target)
    target = Path(os.path.realpath(target))
    made = _make_parents(target)
    is_done = False
    try:
        with _naming(target), _claimed(target) as partial:
            yield partial
            _flush(partial)
            partial.rename(target)
            sync_folder(target.parent)
        is_done = True
    finally:
        if not is_done:
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()


@contextmanager
def _claimed(target: Path) -> Iterator[Path]:
    """A new, locked folder beside `target`; it is gone at the end, unless it was renamed."""
    _remove_abandoned(target)
    partial = handle = None
    try:
        while handle is None:
            partial = target.with_name(f".{target.name}.{_host()}.{secrets.token_hex(4)}{PARTIAL}")
            partial.mkdir()
            handle = _lock(partial)  # None: another export, which began just now, takes it for abandoned
        assert partial is not None
        yield partial
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _remove_abandoned(target: Path) -> None:
    """Removes what killed exports to `target` left: folders of this user and host that nobody has locked."""
    name = re.compile(rf"\.{re.escape(target.name)}\.{_host()}\.[0-9a-f]{{8}}{re.escape(PARTIAL)}")
    found: list[Path] = []
    with suppress(OSError):  # a folder that may be written in and not be read
        found = [path for path in target.parent.iterdir() if name.fullmatch(path.name)]
    for path in found:
        with suppress(OSError):
            if (handle := _lock(path, must=True)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(handle)


def _lock(folder: Path, *, must: bool = False) -> int | None:
    """A descriptor that keeps `folder` locked until it is closed; None where another has it, or where it is gone.

    must: raise OSError where the file system has no such locks, or the folder is another user's; else go without.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there = os.stat(folder, follow_symlinks=False)
        if not os.path.samestat(there, os.fstat(handle)):
            raise FileNotFoundError(folder)
        if must and there.st_uid != os.geteuid():
            raise PermissionError(folder)
    except (BlockingIOError, FileNotFoundError):
        os.close(handle)
        return None
    except OSError:
        if must:
            os.close(handle)
            raise
    return handle


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode(errors="replace")).hexdigest()[:8]


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
        if path.is_dir():
            _flush(path)
            continue
        path.chmod(mode)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(folder)
