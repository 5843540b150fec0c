"""Looking at SQLite files in every condition that a user can bring about; PostgreSQL where it is installed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from search.store.location import locate
from search.store.migrations import REVISIONS
from search.store.read.searches import searches
from search.store.readonly import DatabaseMissing, DatabaseUnreadable, ReadOnlyStore, may_read_only
from search.store.session import open_store


def names(db: Path | str) -> list[str]:
    store = ReadOnlyStore(locate(str(db)))
    try:
        with store.read() as reader:
            return [row.name for row in searches(reader)]
    finally:
        store.close()


@pytest.fixture
def path(filled: Any) -> Path:
    """A database that nobody has open."""
    filled.store.close()
    assert [file.name for file in filled.path.parent.iterdir()] == ["filled.db"]
    return filled.path


@contextmanager
def without_rights(path: Path, folder_mode: int) -> Iterator[Path]:
    """A copy of the database, and of its log if it has one, in a folder of its own; we may not write to the files."""
    folder = Path(tempfile.mkdtemp(prefix="paretovit-", dir="/tmp"))
    for file in path.parent.glob(f"{path.name}*"):
        copy = shutil.copy(file, folder / file.name.replace(path.name, "copy.db"))
        os.chmod(copy, 0o444)
    folder.chmod(folder_mode)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield folder / "copy.db"
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.fixture
def unprivileged(path: Path) -> Iterator[Path]:
    """The database in a folder of its own, while this process may write to neither."""
    with without_rights(path, 0o555) as copy:
        yield copy


def test_it_reads_what_status_reads_on_every_kind_of_database(fill_at: Any, database: str) -> None:
    made = fill_at(database, "hunt")
    assert names(database) == ["hunt"]
    made.store.close()
    assert names(database) == ["hunt"]


def test_a_database_that_is_not_there_is_missing_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing, match="paretovit run"):
        names(tmp_path / "none.db")
    with pytest.raises(DatabaseMissing):
        names(tmp_path / "no" / "folder" / "none.db")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    with pytest.raises(DatabaseMissing):
        names(tmp_path / "empty.db")
    assert (tmp_path / "empty.db").stat().st_size == 0


@pytest.mark.parametrize("content", [b"hello, world" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "some.db"
    file.write_bytes(content)
    with pytest.raises(DatabaseUnreadable, match=r"some\.db"):
        names(file)
    assert file.read_bytes() == content


def test_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnreadable, match="is a folder"):
        names(tmp_path)


def test_databases_of_others_and_of_other_versions_are_left_alone(path: Path, tmp_path: Path) -> None:
    others = tmp_path / "others.db"
    with sqlite3.connect(others) as connection:
        connection.execute("CREATE TABLE search (id INTEGER)")
    connection.close()
    with pytest.raises(DatabaseUnreadable, match="no searches of paretovit"):
        names(others)
    for version, told in (("0000", "newer"), ("9999", "newer")):
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE paretovit_version SET version_num = ?", (version,))
        connection.close()
        before = path.read_bytes()
        with pytest.raises(DatabaseUnreadable, match=told):
            names(path)
        assert path.read_bytes() == before


def test_an_older_version_is_not_brought_forward(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search.store.readonly.REVISIONS", (*REVISIONS, "9000"))
    monkeypatch.setattr("search.store.readonly.HEAD", "9000")
    with pytest.raises(DatabaseUnreadable, match="paretovit db upgrade"):
        names(path)


def test_reading_leaves_the_file_as_it_is(path: Path) -> None:
    before, modified = path.read_bytes(), path.stat().st_mtime_ns
    assert names(path) == ["digits"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, modified)
    assert {file.name for file in path.parent.iterdir()} <= {"filled.db", "filled.db-wal", "filled.db-shm"}


def test_the_connection_cannot_write(path: Path) -> None:
    with pytest.raises(DatabaseUnreadable, match="readonly"):
        with ReadOnlyStore(locate(str(path))).read() as reader:
            reader.rows("DELETE FROM search")
    assert names(path) == ["digits"]


def test_a_file_and_folder_without_the_right_to_write_can_be_read(unprivileged: Path) -> None:
    with pytest.raises(OSError):
        (unprivileged.parent / "probe").touch()
    with pytest.raises(OSError):
        unprivileged.open("ab")
    assert names(unprivileged) == ["digits"]
    assert [file.name for file in unprivileged.parent.iterdir()] == ["copy.db"]


def test_looking_leaves_nothing_that_would_be_in_the_way_of_those_who_may_write(path: Path) -> None:
    """Where the folder is anybody's, a log that we made would be ours, and closed to the file's owner."""
    with without_rights(path, 0o777) as copy:
        assert names(copy) == ["digits"]
        assert [file.name for file in copy.parent.iterdir()] == ["copy.db"]


@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
def test_without_the_right_to_write_a_running_searchs_log_is_read_too(filled: Any, folder_mode: int) -> None:
    from sqlalchemy import update

    from search.store.models import Search

    filled.store.write(lambda session: session.execute(update(Search).values(name="renamed")))
    with without_rights(filled.path, folder_mode) as copy:
        assert names(copy) == ["renamed"]


def test_the_log_of_a_linked_file_is_found(filled: Any, tmp_path: Path) -> None:
    from sqlalchemy import update

    from search.store.models import Search

    filled.store.write(lambda session: session.execute(update(Search).values(name="renamed")))
    with without_rights(filled.path, 0o555) as copy:
        link = Path(tempfile.mkdtemp(prefix="paretovit-", dir="/tmp")) / "link.db"
        link.symlink_to(copy)
        try:
            assert may_read_only(link)
            assert names(link) == ["renamed"]
        finally:
            shutil.rmtree(link.parent)


def test_who_may_write_does_not_only_read(path: Path) -> None:
    assert not may_read_only(path)
    assert not may_read_only(path.with_name("none.db"))
    for folder_mode in (0o555, 0o777):
        with without_rights(path, folder_mode) as copy:
            assert may_read_only(copy)


def test_what_a_running_search_has_not_put_into_the_file_yet_is_seen(filled: Any) -> None:
    """Its last results are in the write-ahead log only."""
    from sqlalchemy import update

    from search.store.models import Search

    before = filled.path.read_bytes()
    filled.store.write(lambda session: session.execute(update(Search).values(name="renamed")))
    assert filled.path.read_bytes() == before
    assert names(filled.path) == ["renamed"]


def test_a_search_that_ends_can_put_its_log_away_although_it_was_looked_at(filled: Any) -> None:
    assert names(filled.path) == ["digits"]
    filled.store.close()
    assert [file.name for file in filled.path.parent.iterdir()] == ["filled.db"]


def test_a_database_that_is_removed_and_another_in_its_place_are_noticed(filled: Any, fill_at: Any) -> None:
    store = ReadOnlyStore(locate(str(filled.path)))

    def found() -> list[str]:
        with store.read() as reader:
            return [row.name for row in searches(reader)]

    assert found() == ["digits"]
    filled.store.close()
    filled.path.unlink()
    with pytest.raises(DatabaseMissing):
        found()
    other = fill_at(filled.path.with_name("other.db"), "another")
    other.store.close()
    other.path.rename(filled.path)
    assert found() == ["another"]


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_lock_that_stays_is_told_after_a_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr("search.store.readonly.PATIENCE_SECONDS", 0.2)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute(f"PRAGMA journal_mode={mode}")
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseUnreadable, match="locked"):
        names(path)
    holder.close()
    assert names(path) == ["digits"]


def test_reading_while_another_thread_writes_never_fails(filled: Any) -> None:
    from search.store.write import results

    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            filled.store.write(lambda session: results.add_event(session, 1, "note", "more"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert all(names(filled.path) == ["digits"] for _ in range(100))
    finally:
        ended.set()
        writer.join()


def test_a_server_that_is_not_there_is_told_in_a_line() -> None:
    with pytest.raises(DatabaseUnreadable, match="check that it runs") as caught:
        names("postgresql://nobody@127.0.0.1:1/none")
    assert "\n" not in str(caught.value)


def test_an_empty_database_of_a_server_holds_no_searches(postgres_url: str) -> None:
    with pytest.raises(DatabaseUnreadable, match="no searches of paretovit"):
        names(postgres_url)


def test_a_session_on_a_server_cannot_write(postgres_url: str) -> None:
    open_store(postgres_url, create=True).close()
    store = ReadOnlyStore(locate(postgres_url))
    with pytest.raises(DatabaseUnreadable, match="read-only"):
        with store.read() as reader:
            reader.rows("DELETE FROM search RETURNING id")
    store.close()
