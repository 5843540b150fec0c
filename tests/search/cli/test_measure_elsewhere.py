from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from search.store.models import Candidate
from search.store.read.candidates import candidates
from search.store.read.rows import CandidateRow
from search.store.read.searches import search_by_name
from spaces.spec import ArchSpec
from workers.elsewhere import PROTOCOL, script

DEVICE = "cpu-0123456789ab-1t"
Run = Callable[..., tuple[int, str, str]]


def rows(filled: Any) -> list[CandidateRow]:
    """Baselines and finished candidates."""
    with filled.store.read() as reader:
        search = search_by_name(reader, filled.name)
        found = candidates(reader, search.id, role=None)
    return [row for row in found if row.is_baseline or row.state == "finished"]


def write(path: Path, filled: Any, chosen: Sequence[CandidateRow], latency: Callable[[int], float]) -> Path:
    """What a script would have written of them. latency: of a candidate's number."""
    models = [
        {
            "id": f"m{row.number}",
            "name": f"#{row.number} of {filled.name}",
            "search": filled.name,
            "candidate": row.number,
            "spec": row.spec.to_dict(),
            "digest": row.digest,
            "model_mb": 1.0,
        }
        for row in chosen
    ]
    conditions = {"runtime": "onnxruntime", "precision": "fp32", "threads": 1, "batch_sizes": [1]}
    manifest = {"protocol": PROTOCOL, "conditions": conditions, "real_images": False, "models": models}
    results = [result(row.number, latency(row.number)) for row in chosen]
    device = {"id": DEVICE, "name": "Cortex-A76", "label": "edge", "threads": 1, "cores": 4}
    content: dict[str, Any] = {"format": 1, "protocol": PROTOCOL, "device": device, "results": results}
    content |= {"failures": [], "manifest": manifest | {"sha256": script.content_digest(manifest)}}
    path.write_text(json.dumps(content | {"sha256": script.content_digest(content)}))
    return path


def result(number: int, ms: float) -> dict[str, Any]:
    return {
        "id": f"m{number}",
        "time": time.time() - 60,
        "batch_size": 1,
        "latency_ms": ms,
        "latency_ms_low": ms * 0.99,
        "latency_ms_high": ms * 1.01,
        "latency_ms_p95": ms * 1.1,
        "latency_ms_p99": None,
        "latency_ms_spread": 0.02,
        "latency_relative_error": 0.005,
        "num_samples": 100,
        "stopped_by": "relative_error",
        "throughput": 1000 / ms,
        "throughput_batch_size": 1,
        "peak_memory_mb": 12.0,
        "build_seconds": 0.1,
        "first_call_ms": ms * 2,
        "seconds": ms,
        "flags": [],
        "conditions": {"own_share": 1.0, "others_share": 0.0},
        "software": {"onnxruntime": "1.23"},
    }


def test_results_are_shown_stored_once_and_make_a_front_of_their_own(
    run: Run, filled: Any, tmp_path: Path
) -> None:
    chosen = rows(filled)[:-1]
    left_out = rows(filled)[-1].number
    at_home = json.loads(run("front", filled.name, "--json", "--all")[1])
    path = write(tmp_path / "results.json", filled, chosen, lambda number: 500.0 - number)
    code, out, err = run("measure", "--import", str(path))
    assert code == 0, err
    assert f"stored {len(chosen)}" in out
    assert "edge: Cortex-A76 (1 thread)" in out
    assert f"front {filled.name} --device edge" in out
    for device in ("edge", DEVICE):
        there = json.loads(run("front", filled.name, "--device", device, "--json", "--all")[1])
        assert there["device"] == {"id": DEVICE, "name": "Cortex-A76", "threads": 1}
        assert there["conditions"]["runtime"] == "onnxruntime"
        known = {one["candidate"]: one for one in there["candidates"]}
        for row in chosen:
            if not row.is_baseline:
                assert known[row.number]["values"]["latency_ms"] == 500.0 - row.number
        assert known[left_out]["standing"] == "incomparable", "a front holds one device"
        assert "latency_ms" not in known[left_out]["values"]
    again = run("measure", "--import", str(path))[1]
    assert f"stored 0; {len(chosen)} were there already" in again
    assert json.loads(run("front", filled.name, "--json", "--all")[1]) == at_home, "the search's own stays"
    assert "Costs are those on Cortex-A76" in run("front", filled.name, "--device", "edge")[1]


def test_an_unknown_device_is_answered_with_those_there_are(run: Run, filled: Any, tmp_path: Path) -> None:
    run("measure", "--import", str(write(tmp_path / "r.json", filled, rows(filled)[:1], lambda _: 1.0)))
    code, _, err = run("front", filled.name, "--device", "lab")
    assert code == 1
    assert f"edge ({DEVICE})" in err
    assert run("front", "--device", "edge")[0] == 2


def test_results_of_another_architecture_or_database_are_refused_and_nothing_is_stored(
    run: Run, filled: Any, tmp_path: Path
) -> None:
    chosen = rows(filled)
    path = write(tmp_path / "results.json", filled, chosen, lambda _: 1.0)
    content = json.loads(path.read_text())
    models = content["manifest"]["models"]
    models[-1]["spec"], models[-1]["digest"] = models[0]["spec"], models[0]["digest"]
    content["manifest"]["sha256"] = script.content_digest(content["manifest"])
    path.write_text(json.dumps(content | {"sha256": script.content_digest(content)}))
    code, _, err = run("measure", "--import", str(path))
    assert code == 1
    assert f"{path}: #{chosen[-1].number} of {filled.name}: digest" in err
    assert run("front", filled.name, "--device", "edge")[0] == 1
    models[-1]["candidate"] = 9999
    content["manifest"]["sha256"] = script.content_digest(content["manifest"])
    path.write_text(json.dumps(content | {"sha256": script.content_digest(content)}))
    assert "is not in this database" in run("measure", "--import", str(path))[2]


def test_an_edited_file_is_refused_by_name(run: Run, filled: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", filled, rows(filled)[:1], lambda _: 1.0)
    path.write_text(path.read_text().replace('"edge"', '"lab"'))
    code, _, err = run("measure", "--import", str(path))
    assert (code, err.count("\n")) == (1, 1)
    assert f"{path}: has changed since it was written" in err


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--bundle", "x"], "name a search, or timm models"),
        (["--bundle", "x", "--import", "y"], "give one of them"),
        (["--import", "y", "--batch", "2"], "--import has no use for --batch"),
        (["--bundle", "x", "--timm", "resnet18", "--runtime", "torch"], "--bundle has no use for --runtime"),
        (["--bundle", "x", "NAME", "--classes", "3"], "--bundle of a search has no use for --classes"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run: Run, arguments: list[str], said: str) -> None:
    code, _, err = run("measure", *arguments)
    assert code == 2
    assert said in err


def test_a_network_of_a_search_and_a_named_one_go_there_and_back(
    run: Run, filled: Any, tmp_path: Path
) -> None:
    spec = ArchSpec("mobilenetv3_small_050", {"in_chans": 1, "num_classes": 10}, 32)

    def make_buildable(session: Any) -> int:
        row = session.query(Candidate).filter(Candidate.name == filled.baseline).one()
        row.spec, row.digest = spec.to_dict(), spec.digest
        return row.number

    number = filled.store.write(make_buildable)
    folder = tmp_path / "bundle"
    named = ["--timm", "mobilenetv3_small_075"]
    code, out, err = run("measure", "--bundle", str(folder), filled.name, filled.baseline, *named)
    assert code == 0, err
    assert "2 networks" in out
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [one["candidate"] for one in manifest["models"]] == [number, None]
    command = [sys.executable, str(folder / "measure.py"), "--label", "edge"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    code, out, err = run("measure", "--import", str(folder / "results.json"), "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["stored"] == 2
    assert [one["candidate"] for one in found["results"]] == [number, None]
    assert run("measure", "--bundle", str(folder), filled.name)[0] == 2, "it is not empty"
