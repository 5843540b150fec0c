"""Deleting a search for good: its rows, its study and the files that it has written."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select

from search import folders, lease, run_process
from search.errors import UsageError
from search.store.models import Search
from search.store.read.searches import search_by_name
from search.store.session import Store
from search.store.write import queue, searches
from workers import checkpoint

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def delete(store: Store, name: str, confirmed: str) -> str:
    """Deletes a search that nobody drives, or takes one that has not begun out of the queue; says what was done.

    confirmed: the name once more. Of its folder only what paretovit has written goes, and the folder where nothing else
    is in it. Raises UserError where the search is driven, or there is none.
    """
    if confirmed != name:
        raise UsageError(
            f"--confirm: {confirmed!r} is not the name of the search; repeat {name!r} to delete it"
        )
    log = store.artifacts_root / run_process.FOLDER / f"{name}.log"
    if store.write(lambda s: _forget_queued(s, name)):
        log.unlink(missing_ok=True)
        return f"{name} had not begun; it is out of the queue"
    with store.read() as reader:
        row = search_by_name(reader, name)

    store.write(lambda s: searches.take(s, row.id, lease.this_process()))
    _delete_study(store, name)
    store.write(lambda s: s.delete(s.get_one(Search, row.id)))
    log.unlink(missing_ok=True)
    left = _delete_files(Path(row.artifacts))
    return f"deleted {name}" + (f"; {left} holds other files, and stays" if left else "")


def _forget_queued(session: Session, name: str) -> int:
    """Takes rows of the queue away whose search has not begun, unless a search of that name has."""
    if session.scalar(select(Search.id).where(Search.name == name)) is not None:
        return 0
    return queue.forget(session, name)


def _delete_study(store: Store, name: str) -> None:
    import optuna

    from search.study import open_storage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = open_storage(store.optuna_url, store.optuna_engine_kwargs)
    with contextlib.suppress(KeyError):  # a search that was never driven has none
        optuna.delete_study(study_name=name, storage=storage)


def _delete_files(folder: Path) -> Path | None:
    """Deletes what paretovit writes below a search's folder; returns the folder where it has to stay."""
    checkpoints = folder / checkpoint.FOLDER
    for path in checkpoints.glob("*/*"):
        if not checkpoint.NAMES.fullmatch(path.relative_to(checkpoints).as_posix()):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    for name in (folders.MARKER, "report.html"):
        (folder / name).unlink(missing_ok=True)
    for place in (*checkpoints.glob("*"), checkpoints, folder):
        with contextlib.suppress(OSError):  # not empty, or not there
            place.rmdir()
    return folder if folder.exists() else None
