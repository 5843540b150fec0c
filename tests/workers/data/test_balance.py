from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional

from workers.data.balance import class_weights, evenly_drawn
from workers.data.batches import Augment, DeviceData, dealt, resident, to_device, training_batches
from workers.data.dataset import Dataset, Images
from workers.job import CheckpointRef, Decision
from workers.settings import DataSettings
from workers.train import train

CPU = torch.device("cpu")
LABELS = torch.tensor([2] * 900 + [0] * 90 + [3] * 10)
"""Of five classes; two have no image."""


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def data(balance: str) -> DeviceData:
    pixels = np.zeros((1000, 2, 2, 1), np.uint8)
    pixels[:, 0, 0, 0] = np.arange(1000) % 256
    split = Images(pixels, LABELS.numpy())
    made = to_device(Dataset(2, 1, tuple("abcde"), dict.fromkeys(("train", "val", "test"), split), "d"), CPU)
    return DeviceData(**(vars(made) | {"balance": balance}))


def test_every_class_and_every_image_of_a_class_is_drawn_as_often() -> None:
    drawn = torch.cat([evenly_drawn(LABELS, gen) for gen in [generator()] for _ in range(300)])
    counts = torch.bincount(LABELS[drawn], minlength=5) / len(drawn)
    assert torch.allclose(counts, torch.tensor([1 / 3, 0, 1 / 3, 1 / 3, 0]), atol=0.005)
    small = torch.bincount(drawn, minlength=1000)[LABELS == 3] / len(drawn)
    assert torch.allclose(small, torch.full((10,), 1 / 30), atol=0.002)
    assert (torch.bincount(drawn, minlength=1000) > 0).all()


def test_weights_give_every_class_the_same_part_of_the_loss() -> None:
    weights = class_weights(LABELS, 5)
    part = torch.bincount(LABELS, minlength=5) * weights
    assert torch.allclose(part, torch.tensor([1000 / 3, 0, 1000 / 3, 1000 / 3, 0]))
    assert torch.isclose(weights[LABELS].mean(), torch.tensor(1.0))
    assert torch.equal(class_weights(torch.arange(10), 10), torch.ones(10))


def test_weights_are_those_of_the_cross_entropy() -> None:
    scores = torch.randn(1000, 5, generator=generator())
    weights = class_weights(LABELS, 5)
    by_class = [
        functional.cross_entropy(scores[rows], LABELS[rows])
        for rows in (torch.nonzero(LABELS.eq(label))[:, 0] for label in (0, 2, 3))
    ]
    assert torch.isclose(
        functional.cross_entropy(scores, LABELS, weights), torch.stack(by_class).mean(), rtol=1e-4
    )


def test_an_epoch_of_drawn_images_is_as_long_and_the_one_that_is_dealt() -> None:
    drawn = data("sampler")
    labels = [labels for _, labels in training_batches(drawn, 64, Augment(max_shift=1, flip=True), 7)]
    assert [len(batch) for batch in labels] == [
        len(batch) for _, batch in training_batches(data("none"), 64, Augment(), 7)
    ]
    assert torch.equal(torch.cat(labels), LABELS[torch.cat(dealt(drawn, 64, 7))])
    assert torch.bincount(torch.cat(labels))[3] > 250


def test_only_the_loss_is_weighed_where_that_is_asked_for() -> None:
    assert data("none").class_weights is None
    assert data("sampler").class_weights is None
    assert torch.equal(data("loss").class_weights, class_weights(LABELS, 5))
    assert torch.equal(torch.cat(dealt(data("loss"), 64, 7)), torch.cat(dealt(data("none"), 64, 7)))


def test_a_process_keeps_its_images_from_one_balance_to_another() -> None:
    plain = resident(DataSettings("digits"), CPU)
    drawn = resident(DataSettings("digits", balance="sampler"), CPU)
    assert (plain.balance, drawn.balance) == ("none", "sampler")
    assert drawn.splits is plain.splits


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("balance", ["sampler", "loss"])
def test_balanced_training_differs_and_ends_in_the_same_bits_when_it_is_resumed(train_job, balance) -> None:
    def run(first: int, last: int, balance: str, **changes) -> tuple[float, dict[str, torch.Tensor]]:
        job = train_job(first, last, **changes)
        data = dataclasses.replace(job.settings.data, balance=balance)
        job = dataclasses.replace(job, settings=dataclasses.replace(job.settings, data=data))
        result = train(job, CPU, lambda _: Decision.CONTINUE, lambda: 0.0)
        refs.append(result.checkpoint)
        return result.epochs[-1].train_loss, load_file(Path(job.artifacts) / result.checkpoint.path)

    refs: list[CheckpointRef] = []
    loss, whole = run(1, 2, balance)
    run(1, 1, balance, id="other")
    resumed_loss, resumed = run(2, 2, balance, id="other", attempt=2, checkpoint=refs[-1])
    assert loss == resumed_loss
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert run(1, 2, "none", id="third")[0] != loss
