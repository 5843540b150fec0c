from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from spaces.spec import ArchSpec
from workers import distillation
from workers.distillation_settings import DistillationSettings, TeacherSettings
from workers.errors import CandidateError
from workers.job import Decision, Job, Kind, Outcome, Status, TeacherRef
from workers.perform import perform
from workers.settings import DataSettings, RecipeSettings
from workers.teach import origin_of, teach
from workers.train import TrainResult, train

CPU = torch.device("cpu")
MakeJob = Callable[..., Job]
pytestmark = pytest.mark.usefixtures("one_thread")


def run(job: Job, work: Callable[..., TrainResult] = teach) -> TrainResult:
    return work(job, CPU, lambda _: Decision.CONTINUE, lambda: 0.0)


def learns(**teacher: Any) -> dict[str, Any]:
    return {"distillation": DistillationSettings(TeacherSettings(**teacher))}


def assert_same_bits(job: Job, *results: TrainResult) -> None:
    found, expected = (load_file(Path(job.artifacts, result.checkpoint.path)) for result in results)
    assert found.keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in found.items())


@pytest.fixture
def given(train_job: MakeJob, tmp_path: Path) -> tuple[Path, TrainResult]:
    """A checkpoint of another search on the same images, and what its training found."""
    job = train_job(1, 2, artifacts=str(tmp_path / "other"))
    result = run(job, train)
    return Path(job.artifacts, result.checkpoint.path), result


def take_over(train_job: MakeJob, path: Path, **changes: Any) -> TrainResult:
    asked = {"kind": Kind.TEACH, "candidate": 0, **learns(checkpoint=str(path)), **changes}
    return run(train_job(0, 0, **asked))


def test_a_teacher_is_trained_as_the_settings_say_but_without_a_teacher(train_job: MakeJob) -> None:
    taught = run(train_job(1, 2, kind=Kind.TEACH, candidate=0, **learns(train="resnet", epochs=2)))
    alone = run(train_job(1, 2, candidate=0, epochs=2, id=9), train)
    assert taught.evaluation == alone.evaluation
    assert_same_bits(train_job(1, 1), taught, alone)


def test_a_teacher_stopped_and_resumed_ends_in_the_same_bits(train_job: MakeJob) -> None:
    changes = {"kind": Kind.TEACH, "candidate": 0, **learns(train="resnet")}
    at_once = run(train_job(1, 3, **changes))
    first = run(train_job(1, 1, id=8, **changes))
    second = run(train_job(2, 3, id=9, checkpoint=first.checkpoint, **changes))
    assert_same_bits(train_job(1, 1), second, at_once)


def test_a_checkpoint_is_taken_over_as_it_is_and_scored(train_job: MakeJob, given: Any) -> None:
    path, made = given
    taken = take_over(train_job, path)
    job = train_job(1, 1)
    copy = Path(job.artifacts, taken.checkpoint.path)
    assert copy.read_bytes() == path.read_bytes()
    assert (taken.checkpoint.sha256, taken.checkpoint.epoch) == (made.checkpoint.sha256, 0)
    assert taken.evaluation == dataclasses.replace(made.evaluation, epoch=0)
    assert sorted(each.name for each in copy.parent.iterdir()) == [copy.name]


def test_what_was_taken_over_teaches(train_job: MakeJob, given: Any) -> None:
    path, _ = given
    taken = take_over(train_job, path)
    teacher = TeacherRef("other", train_job(1, 1).spec, taken.checkpoint)
    result = run(train_job(1, 1, id=9, teacher=teacher, **learns(checkpoint=str(path))), train)
    assert str(result.notes["teacher"]).startswith("learns from other")


def test_a_checkpoint_says_what_network_it_holds_and_on_which_images(train_job: MakeJob, given: Any) -> None:
    path, made = given
    assert origin_of(path).spec == train_job(1, 1).spec
    assert origin_of(path).data == made.data_digest


def test_a_teacher_that_saw_other_images_or_splits_is_refused(train_job: MakeJob, given: Any) -> None:
    path, _ = given
    job = train_job(0, 0, kind=Kind.TEACH, candidate=0, **learns(checkpoint=str(path)))
    other = dataclasses.replace(job.settings, data=DataSettings("digits", train_limit=200, seed=1))
    with pytest.raises(CandidateError, match="was trained on other images or splits"):
        run(dataclasses.replace(job, settings=other))


def test_files_that_are_no_checkpoints_of_ours_are_refused_in_a_line(tmp_path: Path) -> None:
    foreign, broken = tmp_path / "foreign.safetensors", tmp_path / "broken.safetensors"
    save_file({"weight": torch.zeros(1)}, foreign, {"arch": json.dumps({"model": 1})})
    broken.write_bytes(b"nothing")
    for path, reason in (
        (tmp_path / "none.safetensors", "no such file"),
        (broken, "no checkpoint"),
        (foreign, "does not say what network it holds"),
    ):
        with pytest.raises(CandidateError, match=reason) as raised:
            origin_of(path)
        assert str(raised.value).startswith(f"{path}: ")
        assert "\n" not in str(raised.value)


def test_a_teach_job_is_performed(train_job: MakeJob) -> None:
    outcome = perform(
        train_job(1, 1, kind=Kind.TEACH, candidate=0, **learns(train="resnet")), lambda _: Decision.CONTINUE
    )
    assert outcome.status is Status.DONE, outcome.reason
    assert outcome.evaluation is not None
    assert outcome.checkpoint is not None
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_a_missing_teacher_is_said_to_be_the_teachers(train_job: MakeJob) -> None:
    job = train_job(1, 2, kind=Kind.TEACH, candidate=0, **learns(train="resnet"))
    taught = run(job)
    Path(job.artifacts, taught.checkpoint.path).unlink()
    teacher = TeacherRef("resnet", job.spec, taught.checkpoint)
    distillation._held.clear()
    outcome = perform(train_job(1, 1, teacher=teacher, **learns(train="resnet")), lambda _: Decision.CONTINUE)
    assert (outcome.status, outcome.notes) == (Status.ERROR, {"teacher_lost": True})
    assert "teacher resnet" in str(outcome.reason)


@pytest.mark.parametrize(
    ("teacher", "recipe", "expected"),
    [
        ({"train": "resnet"}, {"recipe": "plain", "epochs": 9}, {"recipe": "plain", "epochs": 9}),
        (
            {"train": "resnet", "epochs": 3},
            {"epochs": 9, "warmup_epochs": 5.0},
            {"epochs": 3, "warmup_epochs": 3},
        ),
        ({"train": "resnet"}, {"recipe": "finetune"}, {"recipe": "auto"}),
        ({"weights": "resnet18.a1_in1k"}, {"recipe": "plain"}, {"recipe": "auto"}),
        ({"weights": "resnet18.a1_in1k"}, {"recipe": "finetune"}, {"recipe": "finetune"}),
    ],
)
def test_the_teachers_recipe_is_the_candidates_where_that_can_be(
    teacher: dict[str, Any], recipe: dict[str, Any], expected: dict[str, Any]
) -> None:
    settings = DistillationSettings(TeacherSettings(**teacher))
    found = settings.of_teacher(RecipeSettings(**recipe, distillation=settings))
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.distillation is None


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "needs one of weights, checkpoint and train, not none"),
        ({"weights": "a", "train": "b"}, "not weights and train"),
        ({"train": ""}, "train: is empty"),
        ({"train": "resnet", "epochs": 0}, "epochs: 0 is outside"),
        ({"checkpoint": "a", "epochs": 3}, "epochs: a checkpoint is not trained any more"),
    ],
)
def test_a_teacher_is_given_in_one_way(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        TeacherSettings(**values)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"alpha": 0.0}, "alpha: 0.0 is outside"),
        ({"alpha": 1.1}, "alpha: 1.1 is outside"),
        ({"kind": "hard", "temperature": 2.0}, "temperature: is of kind soft alone, not of hard"),
        ({"temperature": 0.0}, "temperature: 0.0 is outside"),
    ],
)
def test_distillation_settings_that_mean_nothing_are_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        DistillationSettings(TeacherSettings(train="resnet"), **values)


def test_checkpoints_of_networks_with_weights_say_so(fine_tune_job: MakeJob) -> None:
    job = fine_tune_job(1, 1)
    path = Path(job.artifacts, run(job, train).checkpoint.path)
    assert origin_of(path).spec == ArchSpec.from_dict(job.spec.to_dict())
    assert load_file(path)


def test_a_folder_for_a_teacher_is_called_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CandidateError, match="is a folder; name the checkpoint file in it"):
        origin_of(tmp_path)
