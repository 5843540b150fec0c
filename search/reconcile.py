"""What a new driver finds and settles before it decides anything."""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlalchemy.orm import Session

from search.errors import UserError
from search.store.models import Search
from search.store.session import Store
from search.store.write import jobs, results
from workers import checkpoint
from workers.counting import counted


def words(attempts: int, trials: int) -> str:
    """What was found of an earlier driver's: attempts that will never report, and trials that Optuna waits for."""
    found = [f"{counted(attempts, 'attempt')} lost"] if attempts else []
    found += [f"{counted(trials, 'trial')} given up"] if trials else []
    return f"of an earlier driver: {', '.join(found)}"


def settle_leftovers(session: Session, search: Search, device_id: str) -> int:
    """Ends the attempts that an earlier driver left running and puts their jobs back; returns how many.

    They do not count as tries of the job. Raises UserError when the search was measured on another device.
    """
    if search.device_id is None:
        search.device_id = device_id
    elif search.device_id != device_id:
        raise UserError(
            f"search {search.name!r} was measured on {search.device_id}, and this device is {device_id}: "
            "one front holds one device; resume it there, or start another search here"
        )
    return jobs.lose_running(session, search.id, "its driver ended")


def remove_unknown_checkpoints(store: Store, search_id: int, artifacts: Path) -> None:
    """Deletes checkpoint files of attempts that never reported, unfinished ones too, and none named otherwise."""
    folder = artifacts / checkpoint.FOLDER
    if not folder.is_dir():
        return
    known = store.write(lambda session: results.checkpoint_paths(session, search_id))
    for path in folder.glob("*/*"):
        if not checkpoint.NAMES.fullmatch(path.relative_to(folder).as_posix()):
            continue
        if path.is_file() and path.relative_to(artifacts).as_posix() not in known:
            path.unlink(missing_ok=True)
        elif path.suffix == checkpoint.PARTIAL and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
