"""What this machine has to offer a search: folders, threads, variables."""

from __future__ import annotations

import os
import time

import pytest

from search import config, local_checks, validate
from search.errors import UsageError
from workers import device

DIGITS = {"name": "hunt", "data": {"source": "digits"}}


def loaded(**sections):
    return config.from_dict(DIGITS | sections)


def test_a_folder_to_be_made_below_a_writable_one_is_writable(tmp_path):
    assert local_checks.unwritable(tmp_path / "a" / "b") is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file_or_a_broken_link_is_not(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for name in ("file", "link"):
        assert "is not a folder" in (local_checks.unwritable(tmp_path / name / "below") or "")


def test_a_folder_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path))
    assert f"{tmp_path} is not writable" in (local_checks.unwritable(tmp_path / "a") or "")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system has no /proc")
def test_a_folder_of_the_system_takes_no_files_whoever_asks(tmp_path):
    with pytest.raises(UsageError, match=r"artifacts: /proc holds what the system tells of itself \(proc\)"):
        validate.check_new(loaded(artifacts="/proc/x"), time.time())


def test_a_folder_for_results_among_the_images_is_refused_before_a_run(tmp_path):
    images = {"source": "folder", "path": str(tmp_path)}
    with pytest.raises(UsageError, match=r"artifacts: .*/kept/hunt would lie among the images"):
        validate.check_new(loaded(data=images, artifacts=str(tmp_path / "kept")), time.time())


def test_more_threads_than_cores_are_refused_for_a_new_search_alone(monkeypatch):
    monkeypatch.setattr(device, "num_cores", lambda: 2)
    with pytest.raises(
        UsageError, match=r"cost\.threads: 3 is more than the 2 cores that this process may use"
    ):
        validate.check_new(loaded(cost={"threads": 3}), time.time())
    assert validate.check(loaded(cost={"threads": 3}), time.time()).plan.config.cost.threads == 3
