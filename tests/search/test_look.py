from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_status_counts_candidates_jobs_and_epochs(run: Any) -> None:
    code, out, _ = run("status", "digits", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["search"]["name"] == "digits"
    assert found["search"]["state"] == "finished"
    assert found["candidates"]["finished"] == 9
    assert sum(found["candidates"].values()) == 22
    assert found["epochs"] == 10 * 12 + 5 * 4
    assert set(found) >= {"search", "candidates", "jobs", "epochs", "best"}


def test_status_and_show_say_how_a_family_was_trained_and_what_was_compared(run: Any) -> None:
    words = "bf16, channels-last, 1 thread (1.34x the speed of fp32, contiguous, 1 thread; probed on #2)"
    assert json.loads(run("status", "digits", "--json")[1])["executions"]["vit"] == words
    assert f"vit: {words}" in run("status", "digits")[1]
    shown = json.loads(run("show", "digits", "2", "--json")[1])["execution"]
    assert (shown["words"], shown["speed"], shown["precision"]) == (words, 1.34, "bf16")
    assert [trial["step_ms"] for trial in shown["trials"]] == [[4.02], [3.0], []]
    text = run("show", "digits", "2")[1]
    assert f"trained in  {words}" in text
    assert "bf16, contiguous, 1 thread: its loss is nan" in text
    assert json.loads(run("show", "digits", "1", "--json")[1])["execution"] is None


def test_status_and_front_without_a_name_show_all_searches(run: Any) -> None:
    assert [one["search"]["name"] for one in json.loads(run("status", "--json")[1])] == ["digits"]
    assert [one["search"] for one in json.loads(run("front", "--json")[1])] == ["digits"]
    assert "digits: finished" in run("status")[1]


def test_each_front_row_has_its_intervals_and_the_text_says_how_it_was_measured(run: Any) -> None:
    shown = json.loads(run("front", "digits", "--json")[1])
    out = run("front", "digits")[1]
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert len(shown["front"]) >= 3
    for point in shown["front"]:
        line = lines[f"#{point['candidate']}"]
        low, high = point["intervals"]["latency_ms"]
        assert f"({low:.3f}–{high:.3f})" in line
        low, high = point["intervals"]["accuracy"]
        assert f"({low:.3f}–{high:.3f})" in line
        assert "12 of 12" in line
    assert "resnet" in lines
    assert "270 validation images" in " ".join(out.split())
    assert "Example CPU" in out
    assert "Limit: latency_ms at most" in out


def test_the_front_alone_is_shown_unless_all_is_asked_for(run: Any) -> None:
    assert "candidates" not in json.loads(run("front", "digits", "--json")[1])
    assert len(json.loads(run("front", "digits", "--json", "--all")[1])["candidates"]) == 22
    assert "rejected" not in run("front", "digits")[1]
    everything = run("front", "digits", "--all")[1]
    assert "is above its limit" in everything
    assert "4 of 12" in everything


def test_csv_holds_one_point_a_line_with_the_bounds_of_its_intervals(run: Any) -> None:
    shown = json.loads(run("front", "digits", "--json")[1])
    table = list(csv.DictReader(run("front", "digits", "--csv")[1].splitlines()))
    assert [int(row["candidate"]) for row in table] == [point["candidate"] for point in shown["front"]]
    for row, point in zip(table, shown["front"], strict=True):
        assert float(row["accuracy"]) == point["values"]["accuracy"]
        assert [float(row["latency_ms_low"]), float(row["latency_ms_high"])] == point["intervals"][
            "latency_ms"
        ]
        assert json.loads(row["args"]) == point["spec"]["args"]
    everything = list(csv.DictReader(run("front", "--csv", "--all")[1].splitlines()))
    assert len(everything) == 23


def test_json_and_csv_together_are_refused(run: Any) -> None:
    code, out, err = run("front", "digits", "--json", "--csv")
    assert (code, out) == (2, "")
    assert "--csv" in err


def test_show_tells_how_a_candidate_is_built_trained_and_measured(run: Any) -> None:
    code, out, _ = run("show", "digits", "9")
    assert code == 0
    for told in (
        "timm.create_model(",
        "after 4 epochs",
        "after 12 of 12 epochs",
        "calls at batch 1",
        "attempt 1: done",
    ):
        assert told in out
    found = json.loads(run("show", "digits", "9", "--json")[1])
    assert [epoch["epoch"] for epoch in found["epochs"]] == list(range(1, 13))
    assert list(found["by_rung"]) == ["4", "12"]
    assert found["standing"] == "front"
    assert "right after 12 epochs of training" in found["measured_how"]["accuracy"]


def test_the_accuracy_of_what_was_stopped_is_that_after_its_own_epochs(run: Any) -> None:
    candidates = json.loads(run("front", "digits", "--json", "--all")[1])["candidates"]
    stopped = next(one["candidate"] for one in candidates if one["state"] == "stopped")
    out = run("show", "digits", str(stopped))[1]
    assert "after 4 of 12 epochs" in out
    assert "right after 4 epochs of training" in " ".join(out.split())
    assert "12 epochs of training" not in " ".join(out.split())


def test_show_takes_a_baseline_by_its_name_and_a_number_with_a_hash(run: Any) -> None:
    assert json.loads(run("show", "digits", "resnet", "--json")[1])["standing"] == "baseline"
    assert json.loads(run("show", "digits", "#18", "--json")[1])["reason"].startswith("loss is not finite")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("status", "digit"), "did you mean 'digits'"),
        (("front", "nothing"), "no search 'nothing'"),
        (("show", "digits", "99"), "there are 1 to 22"),
        (("show", "digits", "resnext"), "there are: resnet"),
        (("show", "digits", "9" * 30), "there are: resnet"),
        (("report", "digits", "--to", "."), "is a folder"),
        (("report", "digits", "--to", os.devnull), "is a device"),
        (("status", "--db", "postgresql://localhost:99999/x"), "Port out of range"),
        (("status", "--db", "postgresql://[::1/x"), "Invalid IPv6"),
        (("status", "--db", "/nowhere/at/all.db"), "no such database"),
    ],
)
def test_mistakes_are_one_line_and_say_what_there_is(run: Any, arguments: tuple[str, ...], told: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert told in err
    assert len(err.splitlines()) == 1


def test_report_prints_the_path_that_it_wrote(run: Any, tmp_path: Path) -> None:
    code, out, _ = run("report", "digits", "--to", str(tmp_path / "a" / "front.html"))
    assert code == 0
    assert Path(out.strip()) == tmp_path / "a" / "front.html"
    assert Path(out.strip()).stat().st_size > 1_000_000


def test_a_report_from_a_copy_of_the_database_lies_beside_the_copy(
    filled: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from search.cli.main import main

    copy = tmp_path / "kept" / "copy.db"
    copy.parent.mkdir()
    assert main(["db", "backup", str(copy), "--db", str(filled.store.location.path)]) == 0
    capsys.readouterr()
    assert main(["report", "digits", "--db", str(copy)]) == 0
    written = Path(capsys.readouterr().out.strip())
    assert written == tmp_path / "kept" / "copy.db.artifacts" / "digits" / "report.html"
    assert written.is_file()


def test_a_name_cannot_move_the_terminals_cursor(filled: Any, run: Any) -> None:
    from sqlalchemy import update

    from search.store.models import Search

    filled.store.write(
        lambda session: session.execute(update(Search).values(name="a\x1b[2J\nb", reason="\x07"))
    )
    for command in ("status", "front"):
        out = run(command)[1]
        assert "\x1b" not in out
        assert "\x07" not in out
        assert "a?[2J?b" in out


@pytest.mark.parametrize(
    "arguments", [["--help"], ["status"], ["front"], ["front", "--json", "--all"], ["show", "digits", "3"]]
)
def test_looking_loads_no_torch_ray_or_optuna(filled: Any, arguments: list[str]) -> None:
    code = (
        "import sys; from search.cli.main import main; main(sys.argv[1:]);"
        "sys.stderr.write(','.join({'torch', 'ray', 'optuna', 'timm', 'sqlalchemy', 'plotly'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PARETOVIT_DB": str(filled.path)},
    )
    assert done.stdout
    assert done.stderr == ""
