"""The commands that read a database, for somebody who may only read it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from search.cli.main import main
from search.cli.reading import reading
from search.errors import UserError
from search.store.read.searches import searches

HEAVY = ("torch", "ray", "optuna", "sqlalchemy", "alembic", "moocore", "numpy", "pydantic")
Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = f"""
import sys
from search.cli.main import main
code = main(sys.argv[1:])
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def path(filled: Any) -> Iterator[Path]:
    """A database that nobody has open, in a folder of its own, both without the right to write."""
    filled.store.close()
    folder = filled.path.parent / "locked"
    folder.mkdir()
    copy = Path(shutil.copy(filled.path, folder / "copy.db"))
    copy.chmod(0o444)
    folder.chmod(0o555)
    yield copy
    folder.chmod(0o755)


@pytest.fixture
def run(path: Path) -> Run:
    """Runs a command on it; as root without the capabilities that let root read and write everywhere."""
    dropped = "-dac_override,-dac_read_search"
    without = ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}"]
    start = [*(without if os.geteuid() == 0 else []), sys.executable, "-c"]
    probe = f"open({str(path.parent / 'probe')!r}, 'w')"
    assert "Permission denied" in subprocess.run([*start, probe], capture_output=True, text=True).stderr

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PARETOVIT_DB": str(path)}
        return subprocess.run([*start, COMMAND, *arguments], capture_output=True, text=True, env=environment)

    return run


@pytest.mark.parametrize(
    "arguments", [("status", "digits"), ("front", "digits"), ("show", "digits", "9"), ("pick", "digits")]
)
def test_who_may_only_read_is_shown_what_is_there(run: Run, path: Path, arguments: tuple[str, ...]) -> None:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert "digits" in json.dumps(json.loads(done.stdout))
    assert [file.name for file in path.parent.iterdir()] == ["copy.db"]


def test_reading_alone_stays_quick_and_light(run: Run) -> None:
    for command in ("status", "front"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run(command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert (done.returncode, done.stderr) == (0, "[]\n")
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_the_report_goes_where_one_may_write(run: Run, tmp_path: Path) -> None:
    done = run("report", "digits", "--to", str(tmp_path / "front.html"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "front.html").stat().st_size > 1_000_000


def test_export_gets_as_far_as_the_checkpoint(run: Run, tmp_path: Path) -> None:
    """This search's files were never there; that the database is no obstacle is what is seen here."""
    done = run("export", "digits", "9", "--to", str(tmp_path / "own"))
    assert done.returncode == 1
    assert "its checkpoint /nowhere/digits/checkpoints/9/1/12.safetensors is missing" in done.stderr


def test_a_newer_database_is_told_alike_with_and_without_the_right_to_write(path: Path, run: Run) -> None:
    path.parent.chmod(0o755)
    path.chmod(0o644)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE paretovit_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(UserError, match="newer paretovit") as told, reading(str(path)):
        pass
    path.chmod(0o444)
    path.parent.chmod(0o555)
    done = run("status")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == f"paretovit: {told.value}"


def test_what_may_be_written_is_brought_forward_first(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[object] = []
    monkeypatch.setattr("search.store.session.HEAD", "later")
    monkeypatch.setattr("search.store.migrations.upgrade.upgrade", brought.append)
    with reading(str(filled.path)) as reader:
        assert [row.name for row in searches(reader)] == ["digits"]
    assert len(brought) == 1


def test_a_file_that_may_not_even_be_read_is_named(run: Run, path: Path) -> None:
    path.chmod(0o000)
    done = run("status")
    assert done.returncode == 1
    assert done.stderr.startswith(f"paretovit: {path}: ")
    assert len(done.stderr.splitlines()) == 2


DAMAGED = [
    ("search", "config", "[", "front"),
    ("search", "data", "null", "status"),
    ("candidate", "spec", "[", "front"),
    ("candidate", "spec", "", "pick"),
    ("candidate", "point", "[1]", "show"),
    ("candidate", "intervals", "7", "status"),
    ("candidate", "by_rung", '{"1": ', "report"),
    ("measurement", "figures", "NULL", "front"),
    ("evaluation", "figures", "{" * 99, "show"),
]


@pytest.mark.parametrize(("table", "column", "text", "command"), DAMAGED)
def test_a_damaged_row_is_named_in_one_line(
    filled: Any, capsys: pytest.CaptureFixture[str], table: str, column: str, text: str, command: str
) -> None:
    of = {"search": "", "candidate": "WHERE number = 9"}.get(
        table, "WHERE candidate_id = (SELECT id FROM candidate WHERE number = 9)"
    )
    filled.store.close()
    with sqlite3.connect(filled.path) as connection:
        (row,) = connection.execute(f"SELECT MAX(id) FROM {table} {of}").fetchone()
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (text, row))
    connection.close()
    more = {"show": ["9"], "report": ["--to", str(filled.path.with_name("report.html"))]}.get(command, [])
    code = main([command, "digits", *more, "--db", str(filled.path)])
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    assert err.startswith(f"paretovit: table {table}, row {row}: {column} is damaged, ")
    assert err.endswith("restore the database from a backup\n")
    assert len(err.splitlines()) == 1
