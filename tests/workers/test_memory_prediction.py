"""What training takes is known before a network is built, and what cannot fit is refused."""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from spaces import models
from spaces.analysis import analyse
from spaces.registry import make_space
from spaces.spec import ArchSpec, Task
from workers import device, memory_prediction, perform
from workers.errors import CandidateError
from workers.job import CheckpointRef, Decision, Job, Kind, Status, TeacherRef
from workers.memory_prediction import MARGIN, check_fits, teacher_bytes, training_bytes
from workers.settings import CostSettings, DataSettings, JobSettings, RecipeSettings

HUGE = ArchSpec(
    "vit_base_patch16_224",
    {
        "img_size": 8,
        "patch_size": 2,
        "embed_dim": 4096,
        "depth": 24,
        "num_heads": 64,
        "in_chans": 1,
        "num_classes": 10,
    },
    8,
)


def job(kind: Kind, artifacts: Path) -> Job:
    settings = JobSettings(
        data=DataSettings("digits", train_limit=200, val_limit=100),
        recipe=RecipeSettings(epochs=3, batch_size=64),
        cost=CostSettings(device="cpu", max_seconds=0.05),
    )
    return Job(7, 1, 2, kind, "s", 4, HUGE, settings, str(artifacts), 1, 1)


def test_weights_count_five_times_and_activations_with_every_image():
    known = analyse(HUGE)
    one, three = training_bytes(known, 1), training_bytes(known, 3)
    assert one > 5 * 4 * known.params
    assert (three - one) / 2 > 2 * 4 * (known.activations - known.unstored)


@pytest.mark.parametrize("kind", [Kind.MEASURE, Kind.TRAIN])
def test_a_candidate_too_large_for_its_device_fails_before_it_is_built(tmp_path, monkeypatch, kind):
    def built(*_, **__):
        raise AssertionError("it was built")

    monkeypatch.setenv("PARETOVIT_JOB_MEMORY_MB", "500")
    for name in ("build", "build_shapes", "count"):
        monkeypatch.setattr(models, name, built)
    outcome = perform.perform(job(kind, tmp_path), lambda _: Decision.CONTINUE)
    assert outcome.status is Status.FAILED
    assert outcome.notes["infeasible"]
    needed = training_bytes(analyse(HUGE), 64) / 1e6
    assert f"too large: training with batches of 64 would take about {needed:,.0f} MB" in str(outcome.reason)
    assert "a job may take 500 MB" in str(outcome.reason)
    assert "training.batch_size" in str(outcome.reason)


def test_what_fits_within_the_error_of_the_prediction_is_tried(monkeypatch):
    cpu, needed = device.resolve("cpu"), training_bytes(analyse(HUGE), 64)
    monkeypatch.setattr(memory_prediction, "device_bytes", lambda _: needed / MARGIN + 1)
    check_fits(HUGE, 64, cpu)
    monkeypatch.setattr(memory_prediction, "device_bytes", lambda _: needed / MARGIN - 1)
    with pytest.raises(CandidateError, match="too large"):
        check_fits(HUGE, 64, cpu)


def test_a_network_without_a_closed_form_is_let_through(monkeypatch):
    monkeypatch.setattr(memory_prediction, "device_bytes", lambda _: 1)
    check_fits(ArchSpec("vgg11", {"num_classes": 10}, 32), 64, device.resolve("cpu"))


def test_the_teacher_of_a_candidate_counts_too(monkeypatch):
    small = ArchSpec(HUGE.model, {**HUGE.args, "embed_dim": 64, "num_heads": 4, "depth": 1}, 8)
    alone, beside = training_bytes(analyse(small), 64), teacher_bytes(HUGE, 64)
    assert 4 * analyse(HUGE).params < beside < training_bytes(analyse(HUGE), 64)
    monkeypatch.setattr(memory_prediction, "device_bytes", lambda _: alone)
    check_fits(small, 64, device.resolve("cpu"))
    with pytest.raises(CandidateError, match=rf"{beside / 1e6:,.0f} MB of them for its teacher"):
        check_fits(small, 64, device.resolve("cpu"), HUGE)


def test_of_a_teacher_without_a_closed_form_the_weights_count():
    teacher = ArchSpec("vgg11", {"num_classes": 10}, 32)
    assert teacher_bytes(teacher, 64) == 4 * models.count(teacher)


def test_a_job_is_refused_for_its_teacher(tmp_path, monkeypatch):
    small = ArchSpec(HUGE.model, {**HUGE.args, "embed_dim": 64, "num_heads": 4, "depth": 1}, 8)
    asked = dataclasses.replace(job(Kind.TRAIN, tmp_path), spec=small)
    asked = dataclasses.replace(asked, teacher=TeacherRef("huge", HUGE, CheckpointRef("x", 1, "0", 1)))
    monkeypatch.setenv("PARETOVIT_JOB_MEMORY_MB", "500")
    outcome = perform.perform(asked, lambda _: Decision.CONTINUE)
    assert "for its teacher" in str(outcome.reason)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_the_prediction_is_within_a_factor_of_the_peak_of_real_training():
    """Three networks here; tests/benchmarks/test_memory_prediction.py measures 50 and shows the error."""
    pairs = []
    for family in ("vit", "swin", "hybrid"):
        space = make_space(Task(28, 3, 10), families=[family])
        rng = random.Random(7)
        specs = [space.spec(space.sample(rng)) for _ in range(5)]
        pairs.append((max(specs, key=lambda spec: training_bytes(analyse(spec), 32)), 32))
    lines = "".join(f"{json.dumps([spec.to_dict(), size])}\n" for spec, size in pairs)
    script = Path(__file__).with_name("training_peak.py")
    ended = subprocess.run(
        [sys.executable, str(script)], input=lines, capture_output=True, text=True, check=True
    )
    for (spec, size), peak in zip(pairs, map(int, ended.stdout.split()), strict=True):
        assert 1 / MARGIN < training_bytes(analyse(spec), size) / peak < MARGIN, spec
