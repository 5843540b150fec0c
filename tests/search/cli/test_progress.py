from __future__ import annotations

import os
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
