"""Where --db and PARETOVIT_DB lead."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from search.errors import UserError
from search.store import location
from search.store.location import file_system, locate, mounts


def test_the_flag_comes_before_the_variable_and_that_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARETOVIT_DB", raising=False)
    assert locate(None).path == tmp_path / "paretovit.db"
    monkeypatch.setenv("PARETOVIT_DB", "of_env.db")
    assert locate(None).path == tmp_path / "of_env.db"
    assert locate("flag.db").path == tmp_path / "flag.db"


@pytest.mark.parametrize("text", ["a b.db", "sqlite:///a b.db", "sqlite:///a%20b.db"])
def test_a_path_and_its_url_are_the_same_file(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate(text).path == tmp_path / "a b.db"


def test_an_absolute_url_stays_absolute() -> None:
    assert locate("sqlite:////var/lib/a.db").path == Path("/var/lib/a.db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_is_read_by_psycopg_3(scheme: str) -> None:
    found = locate(f"{scheme}://me:pw@host:5433/db")
    assert found.url == "postgresql+psycopg://me:pw@host:5433/db"
    assert found.conninfo == "postgresql://me:pw@host:5433/db"
    assert found.label == "postgresql://me@host:5433/db"
    assert not found.is_sqlite


@pytest.mark.parametrize("text", ["mysql://host/db", "sqlite://", "sqlite:///", "http://x/y", ":memory:"])
def test_other_databases_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="--db"):
        locate(text)


def test_the_innermost_and_latest_mount_counts() -> None:
    mounted = [("/", "ext4"), ("/home", "nfs4"), ("/home/me/disk", "ext4"), ("/home/me/disk", "xfs")]
    assert file_system(Path("/home/me/disk/a.db"), mounted) == "xfs"
    assert file_system(Path("/home/me/a.db"), mounted) == "nfs4"
    assert file_system(Path("/homely/a.db"), mounted) == "ext4"


@pytest.mark.skipif(sys.platform != "linux", reason="compares with Linux's own list")
def test_both_ways_of_listing_mounts_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = file_system(tmp_path.resolve(), mounts())
    monkeypatch.setattr(location.sys, "platform", "darwin")
    assert file_system(tmp_path.resolve(), mounts()) == here
