from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.augment import RandAugment
from workers.data.batches import (
    Augment,
    DeviceData,
    batches_per_epoch,
    evaluation_batches,
    resident,
    to_device,
    training_batches,
)
from workers.data.dataset import Dataset, Images
from workers.knobs import DEFAULTS
from workers.mixing import Erasing, Mixing
from workers.settings import DataSettings

CPU = torch.device("cpu")


def device_data(pixels: np.ndarray) -> DeviceData:
    images = Images(pixels, np.arange(len(pixels)))
    names = tuple(str(number) for number in range(len(pixels)))
    size, channels = pixels.shape[2:]
    return to_device(
        Dataset(size, channels, names, dict.fromkeys(("train", "val", "test"), images), "d"), CPU
    )


def pictures(count: int, size: int = 8, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, size, size, channels), np.uint8)


def test_training_images_have_mean_0_and_deviation_1_in_every_channel() -> None:
    pixels = pictures(50)
    pixels[..., 1] //= 4
    images = torch.cat([batch for batch, _ in training_batches(device_data(pixels), 16, Augment(), 0)])
    assert images.shape == (50, 3, 8, 8)
    assert torch.allclose(images.mean((0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert torch.allclose(images.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-5)


def test_a_constant_channel_stays_finite() -> None:
    images, _ = next(training_batches(device_data(np.full((4, 8, 8, 1), 7, np.uint8)), 4, Augment(), 0))
    assert torch.equal(images, torch.zeros_like(images))


@given(num_images=st.integers(2, 500), batch_size=st.integers(2, 70))
def test_batches_cover_an_epoch_and_never_hold_a_single_image(num_images: int, batch_size: int) -> None:
    data = device_data(np.zeros((num_images, 1, 1, 1), np.uint8))
    labels = [labels for _, labels in training_batches(data, batch_size, Augment(), 3)]
    sizes = [len(batch) for batch in labels]
    assert torch.equal(torch.cat(labels).sort().values, torch.arange(num_images))
    assert len(sizes) == batches_per_epoch(num_images, batch_size)
    assert min(sizes) >= 2
    assert max(sizes) <= max(batch_size, 3)
    assert len(sizes) <= math.ceil(num_images / batch_size)


def test_a_shifted_image_is_the_image_moved_with_its_border_reflected() -> None:
    data = device_data(np.repeat(pictures(1), 200, 0))
    original = data.normalise(data.splits["train"].pixels[:1])
    padded = torch.nn.functional.pad(original, (2, 2, 2, 2), mode="reflect")
    moved = {
        (dy, dx): padded[0, :, 2 + dy : 10 + dy, 2 + dx : 10 + dx]
        for dy in range(-2, 3)
        for dx in range(-2, 3)
    }
    seen = set()
    for images, _ in training_batches(data, 32, Augment(max_shift=2), 0):
        for image in images:
            [shift] = [shift for shift, expected in moved.items() if torch.equal(image, expected)]
            seen.add(shift)
    assert seen == set(moved)


def test_two_copies_of_one_image_in_a_batch_come_out_different() -> None:
    data = device_data(np.repeat(pictures(1), 64, 0))
    images, _ = next(training_batches(data, 64, Augment(max_shift=1, flip=True), 0))
    assert len({image.numpy().tobytes() for image in images}) > 10


@pytest.mark.parametrize(
    "augment",
    [
        Augment(max_shift=2),
        Augment(flip=True),
        Augment(rand_augment=RandAugment(9.0, 2)),
        Augment(erasing=Erasing(1.0)),
        Augment(mixing=Mixing(0.8, 0.0, 64)),
        Augment(mixing=Mixing(0.0, 1.0, 64)),
        Augment(2, True, 3, RandAugment(9.0, 2), Erasing(0.25), Mixing(0.8, 1.0, 64)),
    ],
    ids=["shift", "flip", "rand_augment", "erasing", "mixup", "cutmix", "all"],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_every_change_is_drawn_for_every_image_and_from_the_seed(augment: Augment, channels: int) -> None:
    """Half of the images are copies of one, the others of another, so that mixing has something to mix."""
    data = device_data(np.repeat(pictures(2, channels=channels), 32, 0))
    (images, _), (again, _), (other, _) = (
        next(training_batches(data, 64, augment, seed)) for seed in (3, 3, 4)
    )
    assert len({image.numpy().tobytes() for image in images}) > (
        3 if augment.flip and not augment.repeats > 1 else 10
    )
    assert torch.equal(images, again)
    assert not torch.equal(images, other)


def test_with_repeats_an_epoch_is_as_long_and_shows_a_part_of_the_images_several_times() -> None:
    data = device_data(pictures(100))
    labels = [labels for _, labels in training_batches(data, 16, Augment(repeats=3), 0)]
    assert [len(batch) for batch in labels] == [len(b) for _, b in training_batches(data, 16, Augment(), 0)]
    _, counts = torch.cat(labels).unique(return_counts=True)
    assert sorted(counts.tolist()) == [1] + [3] * 33
    assert all(len(batch.unique()) <= len(batch) / 3 + 2 for batch in labels)
    seen = torch.cat(
        [batch for seed in range(20) for _, batch in training_batches(data, 16, Augment(repeats=3), seed)]
    )
    assert len(seen.unique()) == 100


def test_copies_of_an_image_that_is_repeated_are_shifted_differently() -> None:
    data = device_data(pictures(9, 16))
    images, labels = next(training_batches(data, 9, Augment(max_shift=3, flip=True, repeats=3), 0))
    assert len(labels.unique()) == 3
    assert len({image.numpy().tobytes() for image in images}) >= 8


def test_mixed_images_come_with_what_they_show_of_every_class() -> None:
    data = device_data(pictures(10))
    images, targets = next(training_batches(data, 10, Augment(mixing=Mixing(0.8, 0.0, 10)), 0))
    whole = data.normalise(data.splits["train"].pixels)
    expected = (targets[:, :, None, None, None] * whole).sum(1)
    assert torch.allclose(images, expected, atol=1e-5)


def test_about_half_of_the_images_are_mirrored() -> None:
    data = device_data(np.repeat(pictures(1), 400, 0))
    images, _ = next(training_batches(data, 400, Augment(flip=True), 0))
    original = data.normalise(data.splits["train"].pixels[:1])[0]
    mirrored = sum(torch.equal(image, original.flip(-1)) for image in images)
    assert 150 < mirrored < 250
    assert mirrored + sum(torch.equal(image, original) for image in images) == 400


def test_labels_stay_with_their_images() -> None:
    data = device_data(pictures(30))
    for images, labels in training_batches(data, 7, Augment(), 1):
        assert torch.equal(images, data.normalise(data.splits["train"].pixels[labels]))


def test_an_epoch_is_drawn_from_its_seed() -> None:
    data = device_data(pictures(40))
    first, again, other = (
        torch.cat([images for images, _ in training_batches(data, 16, Augment(1, True), seed)])
        for seed in (5, 5, 6)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_evaluation_sees_every_image_once_in_order() -> None:
    data = device_data(pictures(10))
    batches = list(evaluation_batches(data, "val", 4))
    assert [len(labels) for _, labels in batches] == [4, 4, 2]
    assert torch.equal(
        torch.cat([images for images, _ in batches]), data.normalise(data.splits["val"].pixels)
    )


@pytest.mark.parametrize(
    "source, symmetries, flips",
    [
        ("digits", "auto", False),
        ("idx", "auto", False),
        ("folder", "auto", True),
        ("folder", "none", False),
        ("digits", "horizontal_flip", True),
    ],
)
def test_flips_are_left_out_where_they_may_break_labels(source, symmetries, flips: bool) -> None:
    settings = DataSettings(source, path="x", symmetries=symmetries)
    assert Augment.of(settings, 32, DEFAULTS["plain"], 10) == Augment(max_shift=3, flip=flips)


def test_a_shift_is_never_more_than_the_share_that_is_allowed() -> None:
    assert Augment.of(DataSettings("digits"), 8, DEFAULTS["plain"], 10).max_shift == 0


def test_images_stay_on_the_device_between_jobs_until_the_settings_change() -> None:
    first = resident(DataSettings("digits", train_limit=50), CPU)
    assert resident(DataSettings("digits", train_limit=50), CPU) is first
    assert len(resident(DataSettings("digits", train_limit=60), CPU).splits["train"]) == 60
