from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from spaces.spec import ArchSpec
from workers import compiler, executing
from workers.errors import CheckpointError
from workers.evaluate import evaluate_checkpoint
from workers.execution import Execution
from workers.job import Decision, Job
from workers.recipe import compose
from workers.settings import RecipeSettings
from workers.train import TrainResult, train

CPU = torch.device("cpu")
MakeJob = Callable[..., Job]
pytestmark = pytest.mark.usefixtures("one_thread")
CHANNELS = {"channels": [8, 8, 16, 16], "layers": [1, 1, 1, 1], "stem_stride": 1}
RESNET = ArchSpec("paretovit_resnet", CHANNELS | {"in_chans": 1, "num_classes": 10}, 8)
BF16, LAST = Execution("bf16"), Execution(memory_format="channels_last")
BOTH = Execution("bf16", "channels_last")


def run(job: Job) -> TrainResult:
    return train(job, CPU, lambda _: Decision.CONTINUE, lambda: 0.0)


def stored(job: Job, result: TrainResult) -> dict[str, torch.Tensor]:
    return load_file(Path(job.artifacts) / result.checkpoint.path)


@pytest.mark.parametrize("spec", [None, RESNET], ids=["vit", "resnet"])
@pytest.mark.parametrize("execution", [BF16, LAST, BOTH], ids=lambda one: one.words)
def test_every_execution_stops_and_resumes_in_the_same_bits(
    train_job: MakeJob, spec: ArchSpec | None, execution: Execution
) -> None:
    changes: dict[str, Any] = {"stochastic_depth": 0.2, "execution": execution} | (
        {"spec": spec} if spec else {}
    )
    whole = train_job(1, 3, **changes)
    at_once = run(whole)
    first = run(train_job(1, 1, id=8, **changes))
    second = run(train_job(2, 3, id=9, checkpoint=first.checkpoint, **changes))
    expected, found = stored(whole, at_once), stored(whole, second)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert at_once.evaluation == second.evaluation


def test_an_execution_changes_a_training_by_rounding_alone(train_job: MakeJob) -> None:
    plain = run(train_job(1, 2, spec=RESNET))
    losses = {
        each: run(train_job(1, 2, id=8 + number, spec=RESNET, execution=each)).epochs[-1].train_loss
        for number, each in enumerate((BF16, LAST, BOTH))
    }
    expected = plain.epochs[-1].train_loss
    assert losses[LAST] == pytest.approx(expected, rel=1e-3)
    assert losses[BF16] == pytest.approx(expected, rel=0.05)
    assert losses[BF16] != expected


def test_a_step_is_done_in_the_precision_and_format_that_are_asked_for() -> None:
    seen: list[torch.Tensor] = []
    training = compose(RESNET, RecipeSettings(epochs=1), 1, 0, CPU)
    executing.execute(training, BOTH)
    stem = next(module for module in training.model.modules() if isinstance(module, nn.Conv2d))
    stem.register_forward_hook(lambda _module, given, made: seen.extend([given[0], made]))
    scores = training.scores(torch.randn(4, 1, 8, 8))
    assert [each.is_contiguous(memory_format=torch.channels_last) for each in seen] == [True, True]
    assert seen[1].dtype is torch.bfloat16
    assert scores.dtype is torch.float32
    wide = [p for p in training.parameters if p.dim() == 4 and p.shape[1] > 1 and p.shape[2] > 1]
    assert wide
    assert all(p.is_contiguous(memory_format=torch.channels_last) for p in wide)
    assert {p.dtype for p in training.parameters} == {torch.float32}


def test_what_is_scored_and_stored_is_fp32_and_contiguous(train_job: MakeJob) -> None:
    job = train_job(1, 1, spec=RESNET, execution=BOTH)
    result = run(job)
    with safe_open(Path(job.artifacts) / result.checkpoint.path, framework="pt") as file:
        assert json.loads(file.metadata()["execution"]) == {
            "precision": "bf16",
            "memory_format": "channels_last",
            "compiled": False,
            "threads": 1,
        }
    assert {value.dtype for value in stored(job, result).values()} <= {torch.float32, torch.int64}
    plain = train_job(1, 1, spec=RESNET, checkpoint=result.checkpoint)
    again, _ = evaluate_checkpoint(plain, CPU, "val")
    assert again.accuracy == result.evaluation.accuracy
    assert again.loss == pytest.approx(result.evaluation.loss, rel=1e-4)


def test_a_checkpoint_goes_on_in_its_precision_alone_and_in_any_format(train_job: MakeJob) -> None:
    first = run(train_job(1, 1, execution=BF16))
    with pytest.raises(CheckpointError, match="precision is bf16, but the job has None"):
        run(train_job(2, 2, id=8, checkpoint=first.checkpoint))
    second = run(train_job(2, 2, id=9, checkpoint=first.checkpoint, execution=BOTH))
    assert second.epoch == 2


def test_threads_are_put_back(train_job: MakeJob) -> None:
    with executing.threads(2):
        assert torch.get_num_threads() == 2
    with pytest.raises(ZeroDivisionError), executing.threads(2):
        raise ZeroDivisionError
    with executing.threads(0):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 1


def test_executions_are_told_in_words() -> None:
    assert Execution("bf16", "channels_last", True, 2).words == "bf16, channels-last, compiled, 2 threads"
    assert Execution(threads=0).words == "fp32, contiguous"


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert str(compiler.missing(is_cuda=False)).startswith("no C++ compiler is here (")
    monkeypatch.setenv("CXX", "my-compiler -O2")
    assert compiler.missing(is_cuda=False) == "no C++ compiler is here (CXX=my-compiler -O2)"
