from __future__ import annotations

import contextlib
import os
import pty
import sys

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
