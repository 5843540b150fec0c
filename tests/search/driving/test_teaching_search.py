"""A real and tiny search whose candidates learn from a teacher, from its YAML to its pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search import launch
from search.cli.main import main
from search.config import from_dict
from search.states import CandidateState, SearchState
from search.store.models import Artifact, Candidate, Event, JobRow
from search.store.session import open_store
from workers.job import Job, Kind

Run = Callable[..., tuple[str, Any]]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a search that has ended."""
    db = tmp_path_factory.mktemp("taught") / "p.db"
    config = from_dict(
        {
            "name": "mini",
            "data": {"source": "digits", "train_limit": 100, "val_limit": 60},
            "space": {"families": ["deit"], "deit": {"depth": [1, 2], "heads": [1]}},
            "training": {
                "epochs": 2,
                "batch_size": 50,
                "distillation": {"teacher": {"train": "resnet", "epochs": 3}, "kind": "token"},
            },
            "cost": {"device": "cpu", "max_seconds": 0.05},
            "search": {"max_candidates": 2, "rungs": [1, 2], "engine": "inline"},
        }
    )
    assert launch.start(config, str(db), lambda _: None).state == SearchState.FINISHED
    return db


def test_candidates_learn_from_the_teacher_and_say_from_whom(searched: Path) -> None:
    store = open_store(str(searched), create=False)
    rows = store.write(lambda s: s.query(Candidate).order_by(Candidate.number).all())
    told = store.write(lambda s: s.query(Event).filter(Event.kind == "teacher").all())
    jobs = store.write(lambda s: s.query(JobRow).filter(JobRow.kind == Kind.TEACH).all())
    files = store.write(lambda s: s.query(Artifact).all())
    store.close()
    teacher = next(row for row in rows if row.number == 0)
    assert (teacher.state, teacher.epoch, len(jobs)) == (CandidateState.FINISHED, 3, 1)
    assert any(file.candidate_id == teacher.id for file in files)
    learnt = {event.candidate for event in told if event.text.startswith("learns from resnet")}
    assert learnt == {row.number for row in rows if row.number > 0}


def test_status_and_show_say_which_teacher_with_which_accuracy(
    searched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        assert main([*arguments, "--db", str(searched)]) == 0
        return capsys.readouterr().out

    found = json.loads(run("status", "mini", "--json"))["teacher"]
    assert (found["name"], found["state"], found["kind"]) == ("resnet", "finished", "token")
    low, high = found["interval"]
    assert low < found["accuracy"] < high
    line = f"resnet, accuracy {found['accuracy']:.3f} ({low:.3f}–{high:.3f})"
    assert line in run("status", "mini")
    assert line in run("show", "mini", "1")
    assert json.loads(run("show", "mini", "1", "--json"))["teacher"] == found
    assert json.loads(run("show", "mini", "resnet", "--json"))["teacher"] is None
    shown = run("show", "mini", "teacher")
    assert line in shown
    assert "teach job" in shown
    whole = json.loads(run("show", "mini", "teacher", "--json"))
    assert len(whole["epochs"]) == 3
    assert Path(whole["artifacts"][0]["path"]).is_file()


def test_the_teacher_is_no_candidate(searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["show", "mini", "0"], ["export", "mini", "teacher", "--to", str(searched / "x")]):
        assert main([*arguments, "--db", str(searched)]) == 1
        assert "no " in capsys.readouterr().err
    assert main(["front", "mini", "--json", "--all", "--db", str(searched)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(point["candidate"] for point in found["candidates"]) == [1, 2]


def test_the_report_and_the_page_show_the_teacher(searched: Path, tmp_path: Path) -> None:
    from dashboards import summary
    from dashboards.report import write_report
    from dashboards.search_data import load

    store = open_store(str(searched), create=False)
    with store.read() as reader:
        data = load(reader, "mini")
        report = write_report(reader, "mini", tmp_path / "report.html").read_text()
    store.close()
    for figures in (summary.figures(data), summary.page_figures(data, "#")):
        (figure,) = [each for each in figures if each.term == "Teacher"]
        assert figure.value == "resnet"
        assert figure.more.startswith("accuracy ")
        assert "(95%)" in figure.more
    assert "Teacher" in report


def test_a_search_killed_between_teaching_and_training_resumes_with_the_same_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from search import inline

    class Killed(BaseException):
        pass

    performed: list[tuple[Kind, str | None]] = []
    perform = inline.perform

    def watched(job: Job, emit: Any) -> Any:
        if job.kind is Kind.TRAIN and not any(kind is Kind.TRAIN for kind, _ in performed):
            performed.append((job.kind, None))
            raise Killed
        performed.append((job.kind, job.teacher and job.teacher.checkpoint.sha256))
        return perform(job, emit)

    monkeypatch.setattr(inline, "perform", watched)
    db = str(tmp_path / "p.db")
    config = from_dict(
        {
            "name": "killed",
            "data": {"source": "digits", "train_limit": 60, "val_limit": 50},
            "space": {"families": ["vit"], "vit": {"depth": [1], "heads": [1]}},
            "training": {"epochs": 1, "distillation": {"teacher": {"train": "resnet"}, "kind": "hard"}},
            "cost": {"device": "cpu", "max_seconds": 0.05},
            "search": {"max_candidates": 1, "rungs": "none", "engine": "inline"},
            "baselines": {},
        }
    )
    with pytest.raises(Killed):
        launch.start(config, db, lambda _: None)
    assert launch.resume("killed", [], db, lambda _: None).state == SearchState.FINISHED
    assert [kind for kind, _ in performed].count(Kind.TEACH) == 1
    store = open_store(db, create=False)
    (file,) = store.write(
        lambda s: (
            s.query(Artifact)
            .join(Candidate, Artifact.candidate_id == Candidate.id)
            .filter(Candidate.number == 0)
        )
    ).all()
    assert [sha for kind, sha in performed if kind is Kind.TRAIN] == [None, file.sha256]
    assert (tmp_path / "p.db.artifacts" / "killed" / file.path).is_file()
    store.close()
