"""One contract for every database that a search can be kept in."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError
from sqlalchemy.orm import Session

from search.errors import UserError
from search.store import location
from search.store.models import Candidate, Event, Search
from search.store.session import Store, open_store


def add_event(text: str) -> Any:
    def work(session: Session) -> int:
        row = Event(time=1.5, kind="test", text=text)
        session.add(row)
        session.flush()
        return row.id

    return work


def add_search(session: Session) -> Search:
    row = Search(name="digits", state="queued", config={"a": [1, None]}, created=1.0, data={}, artifacts="x")
    session.add(row)
    session.flush()
    return row


def texts(store: Store) -> list[str]:
    with store.read() as reader:
        return [row["text"] for row in reader.rows("SELECT text FROM event ORDER BY id")]


class TestStore:
    def test_what_is_written_is_read_back(self, store: Store) -> None:
        number = store.write(add_event("100% of 'it'"))
        with store.read() as reader:
            assert reader.rows("SELECT id, time, text, candidate FROM event WHERE text LIKE '100%'") == [
                {"id": number, "time": 1.5, "text": "100% of 'it'", "candidate": None}
            ]
            assert reader.rows("SELECT id FROM event WHERE text = :text", text="other") == []

    def test_objects_stay_readable_after_the_commit(self, store: Store) -> None:
        assert store.write(add_search).config == {"a": [1, None]}

    def test_a_write_that_raises_leaves_nothing(self, store: Store) -> None:
        def work(session: Session) -> None:
            add_event("lost")(session)
            raise LookupError

        with pytest.raises(LookupError):
            store.write(work)
        assert texts(store) == []

    def test_64_concurrent_writers_lose_nothing(self, store: Store) -> None:
        def work(writer: int) -> None:
            own = Store(store.location)
            for i in range(3):
                own.write(add_event(f"{writer}/{i}"))
            own.close()

        with ThreadPoolExecutor(64) as threads:
            list(threads.map(work, range(64)))
        assert sorted(texts(store)) == sorted(f"{writer}/{i}" for writer in range(64) for i in range(3))

    def test_threads_may_share_a_store(self, store: Store) -> None:
        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda i: (store.write(add_event(str(i))), texts(store)), range(48)))
        assert sorted(texts(store), key=int) == [str(i) for i in range(48)]

    def test_a_counter_moved_by_many_misses_no_step(self, store: Store) -> None:
        search = store.write(add_search).id

        def step(session: Session) -> None:
            row = session.get_one(Search, search, with_for_update=True)
            row.beat += 1

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: store.write(step), range(40)))
        assert store.write(lambda session: session.get_one(Search, search).beat) == 40

    def test_a_reader_sees_one_state_to_its_end(self, store: Store) -> None:
        store.write(add_event("first"))
        with store.read() as reader:
            before = reader.rows("SELECT text FROM event")
            store.write(add_event("second"))
            assert reader.rows("SELECT text FROM event") == before
        assert texts(store) == ["first", "second"]

    def test_a_reader_cannot_write(self, store: Store) -> None:
        with pytest.raises((sqlite3.OperationalError, psycopg.errors.ReadOnlySqlTransaction)):
            with store.read() as reader:
                reader.rows("DELETE FROM event")

    def test_a_passing_failure_runs_the_function_again_whole(self, store: Store) -> None:
        tries: list[int] = []

        def work(session: Session) -> None:
            add_event("once")(session)
            tries.append(1)
            if len(tries) == 1:
                raise OperationalError("", {}, sqlite3.OperationalError("database is locked"))

        store.write(work)
        assert (len(tries), texts(store)) == (2, ["once"])

    def test_other_failures_are_not_repeated(self, store: Store) -> None:
        tries: list[int] = []

        def work(session: Session) -> None:
            tries.append(1)
            add_search(session)
            add_search(session)

        with pytest.raises(IntegrityError):
            store.write(work)
        assert len(tries) == 1

    def test_a_row_without_its_parent_is_refused(self, store: Store) -> None:
        with pytest.raises(IntegrityError):
            store.write(lambda session: session.add(Event(search_id=77, time=0.0, kind="x", text="x")))

    def test_nan_does_not_get_into_json(self, store: Store) -> None:
        def work(session: Session) -> None:
            add_search(session).config = {"a": float("nan")}

        with pytest.raises((StatementError, ValueError), match="JSON"):
            store.write(work)

    def test_a_write_inside_a_write_is_a_mistake_not_a_deadlock(self, store: Store) -> None:
        with pytest.raises(AssertionError, match="inside a write"):
            store.write(lambda _: store.write(add_event("x")))
        store.write(add_event("y"))

    def test_opening_again_finds_what_was_written(self, store: Store, database: str) -> None:
        store.write(add_event("kept"))
        for create in (False, True):
            again = open_store(database, create=create)
            assert texts(again) == ["kept"]
            again.close()

    def test_many_may_create_one_database_at_once(self, database: str) -> None:
        gate = threading.Barrier(8)

        def work(number: int) -> None:
            gate.wait()
            own = open_store(database, create=True)
            own.write(add_event(str(number)))
            own.close()

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(8)))
        opened = open_store(database, create=False)
        assert len(texts(opened)) == 8
        opened.close()

    def test_a_newer_database_is_refused_and_left_alone(self, store: Store, database: str) -> None:
        store.write(
            lambda s: s.connection().exec_driver_sql("UPDATE paretovit_version SET version_num = '9999'")
        )
        with pytest.raises(UserError, match=r"newer paretovit \(version 9999.*pip install --upgrade"):
            open_store(database, create=True)
        with store.read() as reader:
            assert reader.rows("SELECT version_num FROM paretovit_version") == [{"version_num": "9999"}]

    def test_a_database_without_our_tables_is_only_filled_on_request(self, database: str) -> None:
        if "://" not in database:
            sqlite3.connect(database).close()
            Path(database).touch()
        with pytest.raises(UserError, match="holds no searches"):
            open_store(database, create=False)

    def test_optuna_keeps_its_study_in_the_same_database(self, store: Store) -> None:
        import optuna

        storage = optuna.storages.RDBStorage(store.optuna_url, engine_kwargs=store.optuna_engine_kwargs)
        study = optuna.create_study(storage=storage, study_name="digits", directions=["maximize", "minimize"])
        trial = study.ask()
        trial.suggest_int("depth", 1, 3)
        store.write(add_event("between"))
        study.tell(trial, [0.5, 1.0])
        assert len(study.trials) == 1
        assert texts(store) == ["between"]
        storage.remove_session()
        storage.engine.dispose()


class TestSqlite:
    def test_the_file_is_safe_against_power_cuts(self, tmp_path: Path) -> None:
        store = open_store(str(tmp_path / "a.db"), create=True)

        def pragmas(session: Session) -> dict[str, Any]:
            names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            connection = session.connection()
            return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}

        expected = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 60_000}
        assert store.write(pragmas) == expected
        assert store.artifacts_root == tmp_path / "a.db.artifacts"
        store.close()

    def test_a_write_takes_the_lock_before_it_reads(self, tmp_path: Path) -> None:
        store = open_store(str(tmp_path / "a.db"), create=True)
        other = sqlite3.connect(tmp_path / "a.db", timeout=0, isolation_level=None)

        def work(session: Session) -> None:
            session.scalar(select(func.count()).select_from(Event))
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")

        store.write(work)
        other.close()
        store.close()

    def test_removing_a_search_removes_what_belongs_to_it(self, tmp_path: Path) -> None:
        store = open_store(str(tmp_path / "a.db"), create=True)

        def work(session: Session) -> None:
            search = add_search(session)
            common = {"analysis": {}, "measured": {}, "intervals": {}, "by_rung": {}, "point": {}, "spec": {}}
            session.add(
                Candidate(
                    search_id=search.id,
                    number=1,
                    role="candidate",
                    family="vit",
                    digest="d",
                    state="proposed",
                    created=0.0,
                    **common,
                )
            )
            session.flush()
            session.delete(search)

        store.write(work)
        assert store.write(lambda s: s.scalar(select(func.count()).select_from(Candidate))) == 0
        store.close()


class TestPostgres:
    def test_a_killed_connection_costs_a_repetition_and_no_row(self, postgres_url: str) -> None:
        store = open_store(postgres_url, create=True)
        tries: list[int] = []

        def work(session: Session) -> None:
            add_event("once")(session)
            tries.append(1)
            if len(tries) == 1:
                session.connection().exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

        store.write(work)
        assert (len(tries), texts(store)) == (2, ["once"])
        store.close()

    @pytest.mark.parametrize("reached", [True, False])
    def test_a_commit_whose_answer_is_lost_counts_once(
        self, postgres_url: str, monkeypatch: pytest.MonkeyPatch, reached: bool
    ) -> None:
        store = open_store(postgres_url, create=True)
        dialect = store.engine.dialect
        commit = dialect.do_commit
        tries: list[int] = []

        def broken(connection: Any) -> None:
            if reached:
                commit(connection)
            monkeypatch.setattr(dialect, "do_commit", commit)
            connection.dbapi_connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(dialect, "do_commit", broken)
        store.write(lambda session: (tries.append(1), add_event("once")(session)))
        assert texts(store) == ["once"]
        assert len(tries) == (1 if reached else 2)
        store.close()

    def test_every_write_counts_once_across_restarts(self, postgres_url: str, postgres: Any) -> None:
        stores = [open_store(postgres_url, create=True) for _ in range(8)]

        def work(number: int) -> None:
            for i in range(40):
                stores[number].write(add_event(f"{number}/{i}"))

        with ThreadPoolExecutor(8) as threads:
            running = [threads.submit(work, number) for number in range(8)]
            for mode in ("immediate", "fast"):
                postgres.control("restart", "-m", mode)
            for future in running:
                future.result()
        assert sorted(texts(stores[0])) == sorted(f"{number}/{i}" for number in range(8) for i in range(40))
        for store in stores:
            store.close()

    def test_a_reader_opens_again_after_a_restart(self, postgres_url: str, postgres: Any) -> None:
        store = open_store(postgres_url, create=True)
        assert texts(store) == []
        postgres.control("restart", "-m", "fast")
        assert texts(store) == []
        store.close()

    def test_without_the_driver_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(UserError, match=r"pip install 'paretovit\[postgres\]'"):
            open_store("postgresql://localhost/x", create=True)

    def test_a_server_that_is_not_there_is_one_line_without_the_password(self) -> None:
        with pytest.raises(UserError, match="check that it runs") as caught:
            open_store("postgresql://me:secret@127.0.0.1:1/x", create=False)
        assert "secret" not in str(caught.value)
        assert "\n" not in str(caught.value)


class TestMistakes:
    def test_a_missing_file_is_not_created_for_reading(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"no such database.*paretovit run"):
            open_store(str(tmp_path / "a.db"), create=False)
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_folder_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="mkdir -p"):
            open_store(str(tmp_path / "there" / "a.db"), create=True)

    @pytest.mark.parametrize("create", [True, False])
    def test_a_file_that_is_no_database_is_left_as_it_was(self, tmp_path: Path, create: bool) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("remember the milk\n" * 100)
        with pytest.raises(UserError, match="not a database"):
            open_store(str(path), create=create)
        assert path.read_text() == "remember the milk\n" * 100

    def test_a_folder_is_no_database(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="is a folder"):
            open_store(str(tmp_path), create=True)

    @pytest.mark.parametrize("name", ["x" * 300 + ".db", "nul\0.db"])
    def test_an_impossible_name_is_one_line(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(UserError) as caught:
            open_store(str(tmp_path / name), create=True)
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["ein größerer Name.db", "100%20.db", "a#b&c.db", "what?.db", "-x.db"])
    def test_an_unusual_name_is_that_files_name(self, tmp_path: Path, name: str) -> None:
        store = open_store(str(tmp_path / name), create=True)
        store.write(add_event("x"))
        assert texts(store) == ["x"]
        assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}-wal", f"{name}-shm"}
        store.close()

    def test_an_unwritable_place_is_named(self, tmp_path: Path) -> None:
        folder = Path("/proc") if os.geteuid() == 0 else tmp_path / "locked"
        if os.geteuid() != 0:
            folder.mkdir(mode=0o500)
        with pytest.raises(UserError, match="must be able to read and write"):
            open_store(str(folder / "a.db"), create=True)

    @pytest.mark.parametrize("kind", ["nfs4", "cifs", "smbfs", "fuse.sshfs"])
    def test_a_network_disk_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        monkeypatch.setattr(location, "mounts", lambda: [("/", "ext4"), (str(tmp_path.resolve()), kind)])
        with pytest.raises(UserError, match="network file system"):
            open_store(str(tmp_path / "a.db"), create=True)
        assert list(tmp_path.iterdir()) == []
