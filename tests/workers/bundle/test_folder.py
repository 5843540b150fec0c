"""A folder is there complete, or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workers.bundle.folder import PARTIAL, new_folder
from workers.errors import ExportError


def make(target: Path) -> None:
    with new_folder(target) as partial:
        (partial / "a").write_text("1")
        (partial / "b").write_text("2")


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_or_empty_folder_is_filled(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "model"
    if exists:
        target.mkdir()
    make(target)
    assert sorted(path.name for path in target.iterdir()) == ["a", "b"]
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_is_under_its_name_before_the_end(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with new_folder(target) as partial:
        assert partial.parent == tmp_path
        assert partial.name.startswith(".model.")
        assert partial.name.endswith(PARTIAL)
        assert not target.exists()
    assert not partial.exists()


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(1)])
def test_an_error_leaves_nothing_behind(tmp_path: Path, error: BaseException) -> None:
    def fail() -> None:
        with new_folder(tmp_path / "a" / "b" / "model") as partial:
            (partial / "a").touch()
            raise error

    with pytest.raises(type(error)):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_of_the_target(tmp_path: Path) -> None:
    with pytest.raises(
        ExportError, match=r"model: cannot be written \(No space left on device\); give another"
    ):
        with new_folder(tmp_path / "model") as partial:
            raise OSError(28, "No space left on device", str(partial / "x"))
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_survives_an_error(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(ValueError), new_folder(tmp_path / "model"):
        raise ValueError
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


def test_what_is_not_empty_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / ".hidden").touch()
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    for name, reason in (("full", "is not empty"), ("file", "is a file"), ("dangling", "is a file")):
        with pytest.raises(ExportError, match=f"{name}: {reason}; give a folder that is new or empty"):
            make(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "file", "full"]
    assert (tmp_path / "full" / ".hidden").exists()


def test_the_current_folder_is_not_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportError, match="cannot be replaced while it is in use"):
        make(Path())
    make(Path("model"))
    assert (tmp_path / "model" / "a").exists()


def test_a_folder_that_fills_up_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "model"

    def overtaken() -> None:
        with new_folder(target):
            target.mkdir()
            (target / "theirs").touch()

    with pytest.raises(ExportError, match="model: cannot be written"):
        overtaken()
    assert [path.name for path in target.iterdir()] == ["theirs"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match=r"file/model: .*/file is a file; give another"):
        make(tmp_path / "file" / "model")
    with pytest.raises(ExportError, match=r"/proc/model: cannot be written"):
        make(Path("/proc/model"))


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    make(tmp_path / "link")
    assert (tmp_path / "real" / "a").exists()
    assert (tmp_path / "link").is_symlink()


def test_files_are_as_readable_as_the_folder(tmp_path: Path) -> None:
    with new_folder(tmp_path / "model") as partial:
        (partial / "a").touch(0o600)
    mode = stat.S_IMODE((tmp_path / "model").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "model" / "a").stat().st_mode) == mode & 0o666


EXPORT = """
    import sys
    from pathlib import Path
    from workers.bundle.folder import new_folder
    with new_folder(Path(sys.argv[1])) as partial:
        (partial / "a").write_text("theirs")
        print("ready", flush=True)
        sys.stdin.readline()
"""


def test_what_a_killed_export_leaves_stands_in_nobodys_way_and_the_next_removes_it(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    target = tmp_path / "model"
    process = start(EXPORT, str(target))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(list(tmp_path.glob(f".model.*{PARTIAL}"))) == 1
    assert not target.exists()
    make(target)
    assert sorted(path.name for path in target.iterdir()) == ["a", "b"]
    assert list(tmp_path.iterdir()) == [target]


def test_an_export_that_lives_is_left_alone_by_others_to_its_target(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    target = tmp_path / "model"
    process = start(EXPORT, str(target))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(ValueError), new_folder(target):
        raise ValueError
    (theirs,) = tmp_path.iterdir()
    assert (theirs / "a").exists()
    process.communicate("go on\n", timeout=60)
    assert process.returncode == 0
    assert (target / "a").read_text() == "theirs"


def test_exports_to_one_target_at_once_leave_one_of_them_whole(tmp_path: Path) -> None:
    target = tmp_path / "model"

    def one(number: int) -> bool:
        try:
            with new_folder(target) as partial:
                for name in "abcd":
                    (partial / name).write_text(str(number))
        except ExportError:
            return False
        return True

    for _ in range(30):
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(one, range(8)))
        assert sum(done) == 1
        assert {(target / name).read_text() for name in "abcd"} == {str(done.index(True))}
        assert list(tmp_path.iterdir()) == [target]
        shutil.rmtree(target)


def test_only_what_exports_to_the_same_target_left_on_this_host_is_removed(tmp_path: Path) -> None:
    with new_folder(tmp_path / "m*") as partial:
        mine = partial.name
    kept = [
        mine.replace("m*", "more"),
        mine.replace("m*", "m*.m*"),
        mine.replace(PARTIAL, ".other"),
        f".m*.00000000.12345678{PARTIAL}",
        f".m*{PARTIAL}",
    ]
    for name in (*kept, mine):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    link = tmp_path / (mine.replace(PARTIAL, "")[:-8] + "0" * 8 + PARTIAL)
    link.symlink_to(tmp_path / kept[0])
    (tmp_path / "m*").rmdir()
    make(tmp_path / "m*")
    assert {path.name for path in tmp_path.iterdir()} == {*kept, link.name, "m*"}
    assert all((tmp_path / name / "file").exists() for name in kept)


def test_a_file_system_without_locks_serves_too_and_nothing_is_removed_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", fail)
    with new_folder(tmp_path / "model") as partial:
        pass
    (tmp_path / "model").rmdir()
    partial.mkdir()
    make(tmp_path / "model")
    assert sorted(tmp_path.iterdir()) == [partial, tmp_path / "model"]
