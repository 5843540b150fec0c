"""What `paretovit validate` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from search.cli.main import main


@pytest.mark.parametrize(
    ("rungs", "words"),
    [("none", "each trained for 2 epochs, without rungs"), ("[1, 2]", "rungs of 1, 2 epochs")],
)
def test_it_tells_how_candidates_are_trained(
    rungs: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "search.yaml").write_text(
        "name: mini\ndata: {source: digits}\nspace: {families: [vit]}\nbaselines: {}\n"
        f"training: {{epochs: 2}}\nsearch: {{max_candidates: 4, rungs: {rungs}}}\n"
    )
    assert main(["validate", str(tmp_path / "search.yaml")]) == 0
    assert f"up to 4 candidates, {words}\n" in capsys.readouterr().out
