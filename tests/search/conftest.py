"""Commands on a filled database, and databases to test against: an SQLite file, and a throw-away PostgreSQL server
where its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from search.cli.main import main
from search.store.session import Store, open_store


@dataclass(frozen=True)
class Postgres:
    """A server of our own in `folder`, reached through a socket there; other servers are left alone."""

    programs: Path
    folder: Path

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def control(self, *arguments: str) -> None:
        """`pg_ctl`, which refuses to run as root."""
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c max_connections=120 -c fsync=off"
        self.run(
            "pg_ctl", "-w", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-o", options, *arguments
        )

    def run(self, program: str, *arguments: str) -> None:
        as_user = (
            ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        )
        command = [*as_user, str(self.programs / program), *arguments]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, timeout=120)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL server; skips without one installed, except on CI."""
    programs = _programs()
    if programs is None:
        assert not os.environ.get("CI"), "CI must test PostgreSQL: install its server"
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="paretovit-pg-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    server = Postgres(programs, folder)
    try:
        server.run("initdb", "-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8")
        server.control("start")
        yield server
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            server.control("stop", "-m", "immediate")
        shutil.rmtree(folder)


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """An empty database, dropped afterwards."""
    name = f"t{uuid.uuid4().hex[:12]}"
    postgres.execute(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What --db takes: a path that does not exist yet, and the URL of an empty PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "test.db")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """An open, empty store, once on each kind of database."""
    opened = open_store(database, create=True)
    yield opened
    opened.close()


def _programs() -> Path | None:
    found = shutil.which("pg_ctl")
    if found and shutil.which("initdb"):
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda p: int(p.parts[-3]))
    return versions[-1].parent if versions else None


@pytest.fixture
def run(
    filled: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command on the filled database and returns (exit code, standard output, standard error)."""
    monkeypatch.setenv("PARETOVIT_DB", str(filled.path))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return run
