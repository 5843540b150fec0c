"""`paretovit pick` on a finished search."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]


def found(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, _ = run("pick", "digits", "--json", *arguments)
    assert code == 0
    return json.loads(out)


def front(run: Run) -> dict[int, dict[str, Any]]:
    points = json.loads(run("front", "digits", "--json")[1])["front"]
    return {point["candidate"]: point for point in points}


def test_the_pick_is_of_the_front_and_its_figures_are_the_fronts(run: Run) -> None:
    points, picked = front(run), found(run)
    assert set(picked) == {"search", "state", "candidate", "reason", "values", "intervals", "next"}
    for one in (picked, *picked["next"]):
        assert one["values"] == points[one["candidate"]]["values"]
    assert len(picked["next"]) == 3
    assert picked["reason"].startswith("knee of")


def test_under_a_latency_the_most_accurate_one_is_picked(run: Run) -> None:
    points = front(run)
    limit = sorted(point["values"]["latency_ms"] for point in points.values())[2]
    fitting = {n: p["values"]["accuracy"] for n, p in points.items() if p["values"]["latency_ms"] <= limit}
    assert found(run, "--under", f"latency_ms={limit!r}")["candidate"] == max(
        fitting, key=fitting.__getitem__
    )


def test_a_bound_may_be_relative_to_a_baseline(run: Run) -> None:
    limit = json.loads(run("front", "digits", "--json")[1])["baselines"][0]["values"]["latency_ms"]
    absolute = found(run, "--under", f"latency_ms={limit!r}")
    assert found(run, "--under", "latency_ms=1x resnet") == absolute


def test_the_text_holds_the_reason_the_figures_and_the_way_on(
    run: Run, filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    picked = found(run)
    code, out, _ = run("pick", "digits", "--at-least", "throughput=1")
    assert code == 0
    assert f"digits: take #{picked['candidate']}" in out
    assert "throughput at least 1" in out
    assert out.endswith(f"paretovit export digits {picked['candidate']} --to FOLDER\n")
    monkeypatch.delenv("PARETOVIT_DB")
    out = run("pick", "digits", "--db", str(filled.path))[1]
    assert out.endswith(f"digits {picked['candidate']} --to FOLDER --db {filled.path}\n")
    assert "270 validation images" in " ".join(out.split())


def test_a_running_search_is_said_to_go_on(filled: Any, run: Run) -> None:
    from sqlalchemy import update

    from search.store.models import Search

    filled.store.write(lambda session: session.execute(update(Search).values(state="paused")))
    assert "the search is paused: better ones may come" in run("pick", "digits")[1]
    assert found(run)["state"] == "paused"


def test_without_a_candidate_that_fits_the_exit_code_is_3(run: Run) -> None:
    code, out, err = run("pick", "digits", "--under", "latency_ms=0.001")
    assert (code, out) == (3, "")
    assert "no finished candidate has latency_ms at most 0.001; the closest is #9 with latency_ms 0.3" in err
    assert len(err.splitlines()) == 1


def test_with_both_ends_of_a_quantity_bounded_its_closest_value_is_said_once(run: Run) -> None:
    code, _, err = run("pick", "digits", "--at-least", "latency_ms=0.001", "--under", "latency_ms=0.002")
    assert code == 3
    assert err.count("latency_ms 0.3") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--under", "latancy=1"], "--under: unknown quantity 'latancy'; nearest: latency_ms"),
        (["--under", "latency_ms"], "--under: 'latency_ms' is not QUANTITY=NUMBER"),
        (["--under", "latency_ms=fast"], "--under: latency_ms: 'fast' is no bound"),
        (["--under", "latency_ms=-1"], "--under: latency_ms: '-1' is no bound"),
        (["--under", "latency_ms=nan"], "--under: latency_ms: 'nan' is no bound"),
        (["--under", "latency_ms=2x vgg"], "--under: latency_ms: unknown baseline 'vgg'; known: resnet"),
        (["--under", "params=1", "--under", "params=2"], "--under: 'params' is there twice"),
        (["--at-least", "accuracy=90"], "--at-least: accuracy: 90 is above 1"),
        (["--weights", "accuracy=much"], "--weights: accuracy: 'much' is no number"),
        (["--weights", "params=1"], "--weights: 'params' is no objective of this search"),
        (["--weights", "accuracy=0"], "--weights: no weight is above 0"),
        (["--weights", "accuracy=1", "--knee"], "--knee and --weights: give one of them"),
        (
            ["--under", "latency_ms=1", "--at-least", "latency_ms=2"],
            "--under latency_ms=1 and --at-least latency_ms=2 contradict each other; drop or change one",
        ),
        (
            ["--at-least", "latency_ms=2x resnet", "--under", "latency_ms=1.5x resnet", "--json"],
            "contradict each other",
        ),
    ],
)
def test_what_is_no_bound_or_weight_is_refused(run: Run, arguments: list[str], told: str) -> None:
    code, out, err = run("pick", "digits", *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1


def test_an_unknown_search_is_told_what_there_is(run: Run) -> None:
    assert run("pick", "digit")[2] == "paretovit: no search 'digit' in the database; did you mean 'digits'?\n"


def test_picking_loads_no_torch_ray_or_optuna(filled: Any) -> None:
    code = (
        "import sys; from search.cli.main import main; main(['pick', 'digits']);"
        "sys.stderr.write(','.join({'torch', 'ray', 'optuna', 'timm', 'sqlalchemy', 'plotly'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PARETOVIT_DB": str(filled.path)},
    )
    assert "take #" in done.stdout
    assert done.stderr == ""
