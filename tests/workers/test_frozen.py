"""A warm-up in which only what did not come from pretrained weights learns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import spaces.models
from spaces.spec import ArchSpec
from workers.finetuning import classifier_names, freeze
from workers.job import Decision, Job
from workers.train import TrainResult, train

MakeJob = Callable[..., Job]
pytestmark = pytest.mark.usefixtures("one_thread")
RESNET = ArchSpec(
    "paretovit_resnet",
    {"channels": [8, 8, 16, 16], "layers": [1, 1, 1, 1], "stem_stride": 1, "in_chans": 1, "num_classes": 10},
    8,
    weights="mine",
)


def run(job: Job) -> tuple[TrainResult, dict[str, Tensor]]:
    result = train(job, torch.device("cpu"), lambda _: Decision.CONTINUE, lambda: 0.0)
    return result, load_file(Path(job.artifacts) / result.checkpoint.path)


def changed(one: dict[str, Tensor], other: dict[str, Tensor], prefix: str) -> set[str]:
    names = [name.removeprefix(prefix) for name in other if name.startswith(prefix)]
    return {name for name in names if not torch.equal(one[f"model/{name}"], other[prefix + name])}


def test_only_the_classifier_learns_in_the_first_epochs_and_is_averaged(fine_tune_job: MakeJob) -> None:
    """200 images and batches of 64: three or four steps an epoch."""
    _, begun = run(fine_tune_job(1, 1, backbone_rate=0.0, ema_decay=0.0, weight_decay=0.0))
    _, frozen = run(fine_tune_job(1, 1, id=8, frozen_epochs=1.0))
    head = {"head.weight", "head.bias"}
    assert changed(begun, frozen, "model/") == changed(begun, frozen, "ema/") == head
    assert len({name.split("/")[1] for name in frozen if name.startswith("optimizer/")}) == len(head)
    _, free = run(fine_tune_job(1, 2, id=9, frozen_epochs=1.0))
    assert changed(frozen, free, "model/") == {
        name[len("model/") :] for name in free if name.startswith("model/")
    }


@pytest.mark.parametrize("optimizer", ["adamw", "lion", "muon"])
@pytest.mark.parametrize("frozen_epochs", [1.0, 1.5, 4.0])
def test_stopping_and_resuming_ends_in_the_same_bits_across_the_thaw(
    fine_tune_job: MakeJob, optimizer: str, frozen_epochs: float
) -> None:
    settings = {"frozen_epochs": frozen_epochs, "optimizer": optimizer}
    at_once, expected = run(fine_tune_job(1, 3, **settings))
    first, _ = run(fine_tune_job(1, 1, id=8, **settings))
    second, _ = run(fine_tune_job(2, 2, id=9, checkpoint=first.checkpoint, **settings))
    third, found = run(fine_tune_job(3, 3, id=10, checkpoint=second.checkpoint, **settings))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert at_once.evaluation == third.evaluation


def test_frozen_batch_norms_keep_their_statistics(train_job: MakeJob, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = spaces.models.build(dataclasses.replace(RESNET, weights=None))
    save_file(network.state_dict(), tmp_path / "mine.safetensors")
    settings: dict[str, Any] = {"spec": RESNET, "weights_dir": str(tmp_path)}
    _, frozen = run(train_job(1, 1, frozen_epochs=1.0, **settings))
    own = network.state_dict()
    assert all(torch.equal(frozen[f"model/{name}"], own[name]) for name in own if "running_" in name)
    _, free = run(train_job(1, 2, id=8, frozen_epochs=1.0, **settings))
    assert not any(torch.equal(free[f"model/{name}"], own[name]) for name in own if "running_" in name)


def test_what_was_not_inherited_learns_from_the_start_and_what_never_learns_stays() -> None:
    network = spaces.models.build(dataclasses.replace(RESNET, weights=None))
    fixed, fresh, widened = "conv1.conv1.weight", "layer1.0.conv1.weight", "layer2.0.conv1.weight"
    own = dict(network.named_parameters())
    fixed = fixed if fixed in own else next(iter(own))
    own[fixed].requires_grad_(False)
    optimizer = torch.optim.SGD([value for value in own.values() if value.requires_grad], lr=1.0)
    freeze(network, optimizer, {"fresh": [fresh], "widened": [widened]}, True)
    learning = {name for name, value in own.items() if value.requires_grad}
    assert learning == {fresh, widened, *classifier_names(network)}
    freeze(network, optimizer, None, False)
    assert {name for name, value in own.items() if not value.requires_grad} == {fixed}
