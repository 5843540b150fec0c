from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from workers.data.batches import Augment, evaluation_batches, to_device, training_batches
from workers.data.dataset import Dataset, Images
from workers.data.resizing import resized

CPU = torch.device("cpu")
PIXELS = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), np.uint8)


def data():
    images = Images(PIXELS, np.arange(20))
    names = tuple(map(str, range(20)))
    return to_device(Dataset(16, 3, names, dict.fromkeys(("train", "val", "test"), images), "d"), CPU)


def test_images_of_the_right_size_are_left_alone() -> None:
    images = torch.randn(2, 3, 16, 16)
    assert resized(images, 16) is images


@pytest.mark.parametrize("side", [8, 24])
def test_others_are_resized_as_pillow_does(side: int) -> None:
    plane = PIXELS[0, :, :, 0].astype(np.float32)
    expected = np.asarray(Image.fromarray(plane).resize((side, side), Image.Resampling.BICUBIC))
    found = resized(torch.from_numpy(plane)[None, None], side)[0, 0]
    assert np.allclose(found.numpy(), expected, atol=0.05)


def test_a_constant_image_stays_what_it_is() -> None:
    assert torch.allclose(resized(torch.full((1, 1, 16, 16), 0.7), 40), torch.tensor(0.7))


def test_batches_have_the_side_that_was_asked_for_and_else_change_nothing() -> None:
    augment = Augment(max_shift=2, flip=True)
    plain = list(training_batches(data(), 8, augment, 3))
    same = list(training_batches(data().at(16), 8, augment, 3))
    larger = list(training_batches(data().at(24), 8, augment, 3))
    for (images, labels), (again, _), (big, big_labels) in zip(plain, same, larger, strict=True):
        assert torch.equal(images, again)
        assert torch.equal(labels, big_labels)
        assert torch.equal(big, resized(images, 24))
    assert [images.shape[2:] for images, _ in evaluation_batches(data().at(10), "val", 8)] == [(10, 10)] * 3
