from __future__ import annotations

import dataclasses
import hashlib
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from workers import checkpoint
from workers.errors import CheckpointError, MachineError
from workers.job import CheckpointRef, Job
from workers.recipe import Training, compose

MakeJob = Callable[..., Job]


def fresh(job: Job, seed: int = 1) -> Training:
    return compose(job.spec, job.settings.recipe, 5, seed, torch.device("cpu"))


def stepped(job: Job) -> Training:
    """A training that has seen two random batches."""
    training = fresh(job)
    for _ in range(2):
        training.model(torch.randn(8, 1, 8, 8)).square().sum().backward()
        training.optimizer.step()
        training.advance()
    return training


@pytest.fixture
def job(train_job: MakeJob) -> Job:
    return train_job(1, 1)


@pytest.fixture
def saved(job: Job) -> CheckpointRef:
    return checkpoint.save(job, stepped(job), 1, "data")


def resumed(job: Job, ref: CheckpointRef, **changes) -> Job:
    return dataclasses.replace(job, first_epoch=2, last_epoch=2, checkpoint=ref, **changes)


def test_everything_that_training_changes_comes_back(job: Job) -> None:
    before, after = stepped(job), fresh(job, seed=2)
    checkpoint.load(resumed(job, checkpoint.save(job, before, 1, "data")), after, "data")
    assert before.ema is not None
    assert after.ema is not None
    for old, new in (
        (before.model.state_dict(), after.model.state_dict()),
        (before.ema.module.state_dict(), after.ema.module.state_dict()),
    ):
        assert old.keys() == new.keys()
        assert all(torch.equal(old[name], new[name]) for name in old)
    old, new = before.optimizer.state_dict(), after.optimizer.state_dict()
    assert old["param_groups"] == new["param_groups"]
    for number, moments in old["state"].items():
        assert all(torch.equal(value, new["state"][number][name]) for name, value in moments.items())
    assert (after.updates, after.learning_rate) == (before.updates, before.learning_rate)


def test_the_path_holds_candidate_job_attempt_and_epoch(saved: CheckpointRef, job: Job) -> None:
    assert saved.path == "checkpoints/3/7-1-epoch1.safetensors"
    assert (Path(job.artifacts) / saved.path).stat().st_size == saved.num_bytes


def test_a_changed_byte_anywhere_is_noticed(job: Job, saved: CheckpointRef) -> None:
    path, training = Path(job.artifacts) / saved.path, fresh(job)
    before = path.read_bytes()
    for position in (*range(0, len(before), 499), len(before) - 1):
        changed = bytearray(before)
        changed[position] ^= 1 << position % 8
        path.write_bytes(changed)
        with pytest.raises(CheckpointError, match="has changed since it was written"):
            checkpoint.load(resumed(job, saved), training, "data")
    path.write_bytes(before)
    checkpoint.load(resumed(job, saved), training, "data")


def test_a_disk_without_room_is_the_machines_fault_and_leaves_nothing(job: Job, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises((MachineError, OSError)):
            checkpoint.save(job, fresh(job), 1, "data")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path for path in Path(job.artifacts).rglob("*") if path.is_file()] == []


def test_a_missing_checkpoint_is_named(job: Job, saved: CheckpointRef) -> None:
    (Path(job.artifacts) / saved.path).unlink()
    with pytest.raises(CheckpointError, match=r"epoch1\.safetensors: the checkpoint is missing"):
        checkpoint.load(resumed(job, saved), fresh(job), "data")
    with pytest.raises(CheckpointError, match="epoch 2 needs the checkpoint of epoch 1"):
        checkpoint.load(dataclasses.replace(job, first_epoch=2, last_epoch=2), fresh(job), "data")


def test_a_checkpoint_of_something_else_is_refused(
    job: Job, saved: CheckpointRef, train_job: MakeJob
) -> None:
    with pytest.raises(CheckpointError, match="data is data, but the job has other"):
        checkpoint.load(resumed(job, saved), fresh(job), "other")
    with pytest.raises(CheckpointError, match="candidate is 3, but the job has 4"):
        checkpoint.load(resumed(job, saved, candidate=4), fresh(job), "data")
    slower = train_job(2, 2, learning_rate=1e-5, checkpoint=saved)
    with pytest.raises(CheckpointError, match="recipe is"):
        checkpoint.load(slower, fresh(slower), "data")
    with pytest.raises(CheckpointError, match="of epoch 1, but training goes on at 4"):
        checkpoint.load(dataclasses.replace(resumed(job, saved), first_epoch=4), fresh(job), "data")


def test_a_checkpoint_from_other_weights_or_fine_tuned_otherwise_is_refused(
    fine_tune_job: MakeJob, train_job: MakeJob
) -> None:
    job = fine_tune_job(1, 1)
    ref = checkpoint.save(job, stepped(job), 1, "data")
    others = dataclasses.replace(job.spec, weights="others")
    with pytest.raises(CheckpointError, match="spec is"):
        checkpoint.load(resumed(job, ref, spec=others), fresh(job), "data")
    slower = fine_tune_job(2, 2, backbone_rate=0.1, checkpoint=ref)
    with pytest.raises(CheckpointError, match="recipe is"):
        checkpoint.load(slower, fresh(slower), "data")
    moved = fine_tune_job(2, 2, weights_dir="/elsewhere", checkpoint=ref)
    checkpoint.load(moved, fresh(moved), "data")


def test_settings_of_fine_tuning_leave_the_checkpoints_of_other_trainings_valid(
    job: Job, saved: CheckpointRef, train_job: MakeJob
) -> None:
    other = train_job(2, 2, head_rate=0.5, layer_decay=1.0, weights_dir="/elsewhere", checkpoint=saved)
    checkpoint.load(other, fresh(other), "data")
    with safe_open(Path(job.artifacts) / saved.path, "pt") as stored:
        recipe = stored.metadata()["recipe"]
    first_version = (
        "RecipeSettings(recipe='auto', epochs=4, batch_size=64, learning_rate=0.004, weight_decay=0.05, "
        "warmup_epochs=None, label_smoothing=0.1, stochastic_depth=0.05, ema_decay=0.98, max_shift=0.13, seed=0)"
    )
    assert recipe == hashlib.sha256(first_version.encode()).hexdigest()[:16]


def test_a_save_that_fails_leaves_the_older_file_and_nothing_else(
    job: Job, saved: CheckpointRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    path = Path(job.artifacts) / saved.path
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(job, stepped(job), 1, "data")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_averaged_weights_are_those_that_are_scored(job: Job) -> None:
    training, model = stepped(job), fresh(job, seed=2).model
    checkpoint.load_scored(job.artifacts, checkpoint.save(job, training, 1, "data"), model)
    expected = training.scored.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())
    assert not torch.equal(expected["pos_embed"], training.model.state_dict()["pos_embed"])


def test_facts_come_back_with_the_scored_weights_and_never_replace_what_a_checkpoint_is_of(job: Job) -> None:
    ref = checkpoint.save(job, stepped(job), 1, "data", {"mean": "[1.5]", "data": "other"})
    found = checkpoint.load_scored(job.artifacts, ref, fresh(job).model)
    assert (found["mean"], found["data"]) == ("[1.5]", "data")
