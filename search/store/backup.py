"""A copy of an SQLite database, consistent while others write (https://www.sqlite.org/backup.html)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from search.errors import UserError


def copy_sqlite(source: Path, to: Path) -> None:
    """Writes `to`, which must not exist. Raises UserError, and leaves nothing, when it cannot."""
    try:
        with closing(sqlite3.connect(source.as_uri() + "?mode=ro", uri=True)) as origin:
            with closing(sqlite3.connect(to)) as copy:
                origin.backup(copy)
    except sqlite3.Error as error:
        to.unlink(missing_ok=True)
        raise UserError(f"{to}: cannot be written: {error}; choose another path") from error
