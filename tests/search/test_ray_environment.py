from __future__ import annotations

import os

import pytest

from search import ray_environment


def test_what_ray_says_of_a_worker_that_died_stays_out_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray._private import worker

    monkeypatch.setattr(worker, "_worker_logs_enabled", True)  # put back afterwards
    line = {"lines": ["A worker died or was killed"], "pid": "raylet", "is_err": False}
    worker.print_worker_logs(line, None)
    assert "A worker died" in capsys.readouterr().out
    ray_environment.silence()
    worker.print_worker_logs(line, None)
    assert not capsys.readouterr().out


def test_logs_of_ray_are_capped_unless_the_user_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ROTATION_MAX_BYTES", "5")
    monkeypatch.delenv("RAY_ROTATION_BACKUP_COUNT", raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "auto")

    with monkeypatch.context() as patch:
        patch.setattr(os, "environ", dict(os.environ))
        ray_environment.prepare()
        assert os.environ["RAY_ROTATION_MAX_BYTES"] == "5"
        assert os.environ["RAY_ROTATION_BACKUP_COUNT"] == "1"
