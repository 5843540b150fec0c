from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from search import leftovers
from search.errors import UserError

SLEEP = "import sys, time; print('up', flush=True); time.sleep(600)"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(leftovers, "_root", lambda: tmp_path)
    return tmp_path


def sleeper(*words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", SLEEP, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[str]]:
    process = sleeper("--temp-dir=/elsewhere")
    yield process
    process.kill()
    process.communicate()


def test_what_a_dead_driver_left_is_cleared_and_others_are_left_alone(
    root: Path, bystander: subprocess.Popen[str]
) -> None:
    mine = leftovers.make_scratch()
    dead = root / "999999999-1"
    dead.mkdir()
    process = sleeper(f"--temp-dir={dead}/ray")
    assert leftovers.clear() == 1
    process.communicate(timeout=5)
    assert process.poll() is not None
    assert not dead.exists()
    assert mine.exists()
    assert bystander.poll() is None


def test_clearing_ones_own_ends_its_processes_and_removes_its_folder(root: Path) -> None:
    mine = leftovers.make_scratch()
    process = sleeper(f"--temp-dir={mine}/ray")
    leftovers.clear_mine()
    process.communicate(timeout=5)
    assert process.poll() is not None
    assert list(root.iterdir()) == []


def test_a_root_that_is_no_folder_of_ours_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "theirs"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    monkeypatch.setattr(leftovers, "_ROOT", link)
    with pytest.raises(UserError, match="belongs to somebody else"):
        leftovers.clear()


def test_a_folder_that_is_still_written_into_is_deleted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a thread of Ray's that has not heard yet: what is removed first is there again once more."""
    folder = tmp_path / "1-1"
    rmtree, writes = shutil.rmtree, iter([True, False])

    def raced(path: Path, **more: object) -> None:
        rmtree(path, **more)  # pyright: ignore[reportArgumentType]
        if next(writes):
            (folder / "tune").mkdir(parents=True)

    folder.mkdir()
    monkeypatch.setattr(leftovers.shutil, "rmtree", raced)
    leftovers._remove(folder)
    assert not folder.exists()
