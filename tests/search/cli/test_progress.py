from __future__ import annotations

import contextlib
import os
import pty
import sys
import time

import pytest

from search.cli.progress import shown


def test_a_reader_that_has_gone_does_not_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", os.fdopen(write, "w", buffering=1))
        with shown() as progress:
            progress.line("one")
            progress.line("two")
        with pytest.raises(BrokenPipeError):
            sys.stderr.close()


def test_a_terminal_shows_lines_as_they_are_and_may_go_away(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", os.fdopen(theirs, "w", buffering=1))
        with shown() as progress:
            progress.line("candidate [bold]7[/bold] finished")
            progress.status("7 of 30 [red]candidates[/red]")
            shown_text = ""
            while "candidate [bold]7[/bold] finished" not in shown_text:
                shown_text += os.read(ours, 10_000).decode(errors="replace")
            os.close(ours)
            progress.line("nobody reads this")
            progress.status("nor this")
        with contextlib.suppress(OSError):
            sys.stderr.close()


def test_a_log_in_local_time_says_which_zone_that_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    try:
        with shown() as progress:
            progress.line("begun")
        assert "times before these lines are local (CET, UTC+0100)" in capsys.readouterr().err
        monkeypatch.setenv("TZ", "UTC0")
        time.tzset()
        with shown() as progress:
            progress.line("begun")
        assert "local" not in capsys.readouterr().err
    finally:
        monkeypatch.undo()
        time.tzset()
