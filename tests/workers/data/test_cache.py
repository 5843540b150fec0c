from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.data import cache
from workers.data.listing import DataError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARETOVIT_CACHE", str(tmp_path / "cache"))
    found = cache.folder()
    assert found is not None
    return found


def file(root: Path, name: str, size: int, used: float) -> Path:
    path = root / name
    path.write_bytes(bytes(size))
    os.utime(path, (used, used))
    return path


def test_the_cache_is_where_the_variable_says_and_for_the_user_alone(tmp_path, root) -> None:
    assert root == tmp_path / "cache"
    assert root.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("word", ["off", "OFF", "none", "0"])
def test_the_cache_can_be_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETOVIT_CACHE", word)
    assert cache.folder() is None


def test_a_named_folder_that_cannot_be_used_is_an_error(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PARETOVIT_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(
        DataError, match=r"PARETOVIT_CACHE=.*below: cannot be written in; name another folder"
    ):
        cache.folder()


@pytest.mark.parametrize("limit", ["many", "-1", "nan", "inf"])
def test_a_limit_that_is_no_number_is_an_error(limit: str, root: Path, monkeypatch) -> None:
    monkeypatch.setenv("PARETOVIT_CACHE_GB", limit)
    with pytest.raises(DataError, match=f"PARETOVIT_CACHE_GB={limit}: is no positive number"):
        cache.make_room(root, 1)


def test_what_was_not_used_longest_makes_room(root: Path, monkeypatch) -> None:
    monkeypatch.setenv("PARETOVIT_CACHE_GB", "0.000003")
    newest, oldest = file(root, "a", 1000, 3e9), file(root, "b", 1000, 1e9)
    middle = file(root, "c", 1000, 2e9)
    assert cache.make_room(root, 900)
    assert (newest.exists(), middle.exists(), oldest.exists()) == (True, True, False)


def test_what_is_larger_than_the_limit_deletes_nothing(root: Path, monkeypatch) -> None:
    monkeypatch.setenv("PARETOVIT_CACHE_GB", "0.000003")
    kept = file(root, "a", 1000, 1e9)
    assert not cache.make_room(root, 4000)
    assert kept.exists()


def test_what_killed_processes_left_goes_after_a_day_and_what_is_being_written_stays(root: Path) -> None:
    old, new = file(root, ".x.part", 10, 1e9), file(root, ".y.part", 10, 4e9)
    assert cache.make_room(root, 1)
    assert (old.exists(), new.exists()) == (False, True)


def half_written(path: Path) -> None:
    path.write_bytes(b"half")
    raise OSError("full")


def test_a_file_is_replaced_whole_or_not_at_all(root: Path) -> None:
    path = file(root, "a", 3, 1e9)
    with pytest.raises(OSError, match="full"), cache.replacing(path) as part:
        half_written(part)
    assert path.read_bytes() == bytes(3)
    with cache.replacing(path) as part:
        part.write_bytes(b"whole")
        assert path.read_bytes() == bytes(3)
    assert path.read_bytes() == b"whole"
    assert list(root.iterdir()) == [path]
