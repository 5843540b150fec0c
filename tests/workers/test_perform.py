from __future__ import annotations

import dataclasses
import gc
import os
import socket
import threading
import time
import weakref

import pytest
import torch

from spaces.spec import ArchSpec
from workers import device, lock, perform
from workers.device import Device
from workers.errors import DeviceError
from workers.job import Decision, EpochReport, Job, Kind, Outcome, Status
from workers.settings import CostSettings, DataSettings, JobSettings, RecipeSettings

VIT = {
    "img_size": 8,
    "patch_size": 2,
    "embed_dim": 16,
    "depth": 1,
    "num_heads": 2,
    "in_chans": 1,
    "num_classes": 10,
}


def job(kind: Kind, artifacts, epochs: tuple[int, int] = (0, 0), **changes) -> Job:
    settings = JobSettings(
        data=changes.pop("data", DataSettings("digits", train_limit=200, val_limit=100)),
        recipe=RecipeSettings(epochs=max(3, epochs[1]), batch_size=64),
        cost=changes.pop("cost", CostSettings(device="cpu", max_seconds=0.05)),
    )
    spec = ArchSpec("vit_tiny_patch16_224", VIT, 8)
    return Job(7, 1, 2, kind, "s", 4, spec, settings, str(artifacts), *epochs, **changes)


def go_on(report: EpochReport) -> Decision:
    return Decision.CONTINUE


def test_a_measure_job_brings_a_measurement_of_real_images_and_the_number_of_parameters(tmp_path):
    from spaces import models
    from workers.data import dataset

    asked = job(Kind.MEASURE, tmp_path)
    outcome = perform.perform(asked, go_on)
    assert (outcome.status, outcome.reason) == (Status.DONE, None)
    assert outcome.measurement is not None
    assert outcome.device_id == outcome.measurement.device_id == device.resolve("cpu").id
    assert outcome.data_digest == dataset.index(asked.settings.data).digest
    assert outcome.notes == {"params": models.count(asked.spec)}
    assert (outcome.job, outcome.attempt, outcome.lease) == (7, 1, 2)
    assert (outcome.pid, outcome.host) == (os.getpid(), socket.gethostname())
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_a_train_job_reports_its_epochs_and_brings_a_checkpoint_that_an_evaluate_job_scores(tmp_path):
    reports: list[EpochReport] = []

    def emit(report: EpochReport) -> Decision:
        reports.append(report)
        return Decision.CONTINUE

    trained = perform.perform(job(Kind.TRAIN, tmp_path, (1, 2)), emit)
    assert (trained.status, trained.epoch) == (Status.DONE, 2)
    assert list(trained.epochs) == reports
    assert [report.epoch for report in reports] == [1, 2]
    assert trained.checkpoint is not None
    assert trained.evaluation is not None
    assert trained.evaluation.split == "val"
    scored = perform.perform(job(Kind.EVALUATE, tmp_path, checkpoint=trained.checkpoint), go_on)
    assert scored.evaluation is not None
    assert (scored.status, scored.evaluation.split, scored.epoch) == (Status.DONE, "test", 2)


def test_a_training_told_to_stop_is_stopped(tmp_path):
    outcome = perform.perform(job(Kind.TRAIN, tmp_path, (1, 3)), lambda report: Decision.STOP)
    assert (outcome.status, outcome.epoch) == (Status.STOPPED, 1)
    assert outcome.checkpoint is not None


def test_what_emit_raises_is_the_drivers_and_passes_through(tmp_path):
    def emit(report: EpochReport) -> Decision:
        raise LookupError("the lease is gone")

    with pytest.raises(LookupError, match="the lease is gone"):
        perform.perform(job(Kind.TRAIN, tmp_path, (1, 1)), emit)
    assert perform.perform(job(Kind.MEASURE, tmp_path), go_on).status is Status.DONE


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"cost": CostSettings(device="cuda:9")}, "device 'cuda:9' is not here; there is cpu"),
        ({"data": DataSettings("folder", path="/nowhere/images")}, "/nowhere/images"),
    ],
)
def test_a_device_or_images_that_are_not_here_are_this_machines_fault(tmp_path, changes, reason):
    outcome = perform.perform(job(Kind.MEASURE, tmp_path, **changes), go_on)
    assert outcome.status is Status.ERROR
    assert outcome.reason is not None
    assert reason in outcome.reason


def test_a_missing_checkpoint_is_this_machines_fault(tmp_path):
    outcome = perform.perform(job(Kind.TRAIN, tmp_path, (2, 3)), go_on)
    assert (outcome.status, outcome.epoch) == (Status.ERROR, 1)
    assert outcome.reason is not None
    assert "needs the checkpoint" in outcome.reason
    assert outcome.notes == {"checkpoint_lost": True}


def test_weights_that_are_nowhere_are_this_machines_fault_and_not_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr("workers.weights.constants.HF_HUB_OFFLINE", True)
    asked = job(Kind.TRAIN, tmp_path, (1, 3))
    recipe = dataclasses.replace(asked.settings.recipe, weights_dir="/models")
    spec = dataclasses.replace(asked.spec, weights="vit_tiny_patch16_224.nobody")
    settings = dataclasses.replace(asked.settings, recipe=recipe)
    outcome = perform.perform(dataclasses.replace(asked, spec=spec, settings=settings), go_on)
    assert (outcome.status, outcome.notes) == (Status.ERROR, {"retry": False})
    assert outcome.reason is not None
    assert outcome.reason.endswith("put them into /models as vit_tiny_patch16_224.nobody.safetensors")


def test_weights_that_do_not_fit_are_the_candidates_fault(tmp_path):
    from safetensors.torch import save_file

    save_file({"cls_token": torch.zeros(1, 1, 3)}, tmp_path / "other.safetensors")
    asked = job(Kind.TRAIN, tmp_path, (1, 3))
    recipe = dataclasses.replace(asked.settings.recipe, weights_dir=str(tmp_path))
    spec = dataclasses.replace(asked.spec, weights="other")
    settings = dataclasses.replace(asked.settings, recipe=recipe)
    outcome = perform.perform(dataclasses.replace(asked, spec=spec, settings=settings), go_on)
    assert outcome.status is Status.FAILED
    misfit = "cls_token is [1, 1, 3] in the file, and [1, 1, 16] in the network"
    path = tmp_path / "other.safetensors"
    assert outcome.reason == f"weights other do not fit vit_tiny_patch16_224: {misfit} ({path})"


def test_weights_that_are_here_and_cannot_be_read_are_the_candidates_fault(tmp_path):
    path = tmp_path / "other.safetensors"
    path.write_bytes(b"weights")
    asked = job(Kind.TRAIN, tmp_path, (1, 3))
    recipe = dataclasses.replace(asked.settings.recipe, weights_dir=str(tmp_path))
    spec = dataclasses.replace(asked.spec, weights="other")
    settings = dataclasses.replace(asked.settings, recipe=recipe)
    outcome = perform.perform(dataclasses.replace(asked, spec=spec, settings=settings), go_on)
    assert (outcome.status, outcome.notes) == (Status.FAILED, {})
    assert outcome.reason is not None
    assert outcome.reason.startswith(f"{path}: no weights that can be read: ")


def test_a_failure_lets_go_of_the_memory_that_the_work_held():
    class Held:
        pass

    kept: list[weakref.ref[Held]] = []

    def work() -> None:
        held = Held()
        kept.append(weakref.ref(held))
        raise ValueError("no")

    failure = perform.attempt(work)
    assert failure is not None
    gc.collect()
    assert kept[0]() is None


def test_reasons_are_one_line_of_bounded_length():
    def work() -> None:
        raise ValueError("\n\n" + "x" * 5000 + "\nmore")

    failure = perform.attempt(work)
    assert failure is not None
    assert failure.reason.startswith("ValueError")
    assert "\n" not in failure.reason
    assert len(failure.reason) <= perform.MAX_REASON
    assert len(failure.detail) <= perform.MAX_DETAIL


def test_memory_that_a_gpu_lacks_is_the_candidates_fault():
    def work() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total of")

    failure = perform.attempt(work)
    assert failure is not None
    assert failure.status is Status.FAILED
    assert failure.reason == "out of memory: CUDA out of memory. Tried to allocate 20.00 GiB"


def test_an_interrupt_is_not_swallowed():
    def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform.attempt(work)


def test_a_search_that_measures_the_cpu_trains_on_the_gpu_where_there_is_one(monkeypatch):
    gpu = Device("cuda:0", "gpu-0", "Card", 1)
    cpu = device.resolve("cpu")

    def resolve(name: str, threads: int = 1) -> Device:
        if name == "cuda:1":
            raise DeviceError("not here")
        return cpu if name == "cpu" else gpu

    monkeypatch.setattr(perform.devices, "resolve", resolve)
    assert perform.training_device(CostSettings(device="cpu")) == gpu
    assert perform.training_device(CostSettings(device="cuda:0")) == gpu
    assert perform.training_device(CostSettings(device="cuda:1")) == gpu


def test_a_training_steps_aside_for_a_measurement_and_says_for_how_long(tmp_path):
    outcomes: list[Outcome] = []
    trains = threading.Event()

    def emit(report: EpochReport) -> Decision:
        trains.set()
        return Decision.STOP if report.pause_seconds else Decision.CONTINUE

    endless = job(Kind.TRAIN, tmp_path, (1, 100_000))
    thread = threading.Thread(target=lambda: outcomes.append(perform.perform(endless, emit)))
    thread.start()
    assert trains.wait(60)
    with lock.exclusive(device.cpu_lock()):
        time.sleep(0.3)
    thread.join(60)
    (outcome,) = outcomes
    assert outcome.status is Status.STOPPED
    last = outcome.epochs[-1]
    assert last.pause_seconds >= 0.3
    assert all(report.pause_seconds == 0 for report in outcome.epochs[:-1])
