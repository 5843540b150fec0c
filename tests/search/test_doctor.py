import sqlite3
import subprocess

import pytest

from search import doctor
from search.cli.main import main
from spaces.baselines import PRETRAINED
from workers import weights


def test_a_machine_that_is_ready_has_no_remedies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(weights, "reachable", lambda *_: True)
    findings = list(doctor.examine(None, None, start_ray=False))
    assert [finding for finding in findings if finding.remedy] == []
    assert {"python", "torch", "ray", "database", "disk", "devices", "weights", "onnx"} <= {
        finding.subject for finding in findings
    }
    assert list(tmp_path.iterdir()) == []


def test_a_missing_distribution_says_how_to_get_it():
    assert doctor.distribution("no-such-distribution-here").remedy


def test_a_database_that_cannot_be_read_has_a_remedy(tmp_path):
    broken = tmp_path / "broken.db"
    broken.write_text("words " * 300)
    newer = tmp_path / "newer.db"
    with sqlite3.connect(newer) as connection:
        connection.execute("CREATE TABLE paretovit_version (version_num TEXT)")
        connection.execute("INSERT INTO paretovit_version VALUES ('9999')")
    connection.close()
    for path in (broken, newer, tmp_path / "none" / "new.db"):
        finding = doctor.database(str(path))
        assert finding.remedy
        assert path.stem in finding.text + finding.remedy or "none" in finding.text


def test_a_database_that_is_not_there_yet_is_fine(tmp_path):
    assert doctor.database(str(tmp_path / "new.db")).remedy is None
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_problem(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: type("usage", (), {"free": 1e9})())
    assert "1.0 GB free" in doctor.disk(tmp_path / "none" / "below").text
    assert doctor.disk(tmp_path).remedy


def test_a_ray_that_does_not_start_is_a_problem(monkeypatch):
    def fail(*_arguments, **_options):
        return subprocess.CompletedProcess([], 1, "", "trace\nRuntimeError: no ports left\n")

    monkeypatch.setattr(doctor.subprocess, "run", fail)
    finding = doctor.ray()
    assert finding.text == "RuntimeError: no ports left"
    assert finding.remedy


def test_weights_are_found_in_their_folder_and_missed_without_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(weights.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(weights.huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    found = doctor.pretrained_weights(str(tmp_path))
    assert found.remedy
    assert not found.is_problem
    for name in PRETRAINED.values():
        assert name in found.text
        (tmp_path / f"{name}.safetensors").touch()
    assert doctor.pretrained_weights(str(tmp_path)).remedy is None
    assert doctor.pretrained_weights(str(tmp_path / "none")).is_problem


def test_what_only_some_searches_need_is_no_problem(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "examine", lambda *_, **__: [doctor.Finding("x", "is away", "get it", False)])
    assert main(["doctor"]) == 0
    assert "without  x" in capsys.readouterr().out


def test_problems_are_marked_and_end_with_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--db", str(tmp_path / "none" / "x.db")]) == 1
    out = capsys.readouterr().out
    assert "PROBLEM  database" in out
    assert "do: mkdir -p" in out


def test_ray_starts_runs_a_task_and_stops():
    assert doctor.ray().remedy is None


@pytest.mark.parametrize(
    "answer, remedy",
    [("2 nodes; labelled edge (1)\n", None), ("2 nodes, none with a label\n", "--labels paretovit=NAME")],
)
def test_the_labels_of_a_cluster_are_told(monkeypatch, answer, remedy):
    done = subprocess.CompletedProcess([], 0, answer, "")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: done)
    found = doctor.ray_labels()
    assert found.text == answer.strip()
    assert not found.is_problem or found.remedy is None
    assert (found.remedy is None) if remedy is None else (remedy in found.remedy)
