from __future__ import annotations

import numpy as np
import torch

from spaces.spec import ArchSpec
from workers.data.resizing import resized
from workers.measure.inputs import MAX_IMAGES, batch, prepare

SPEC = ArchSpec("m", {"in_chans": 1, "num_classes": 10}, 8)


def test_real_images_are_used_standardised_and_resized():
    images = np.arange(10 * 16 * 16, dtype=np.uint8).reshape(10, 16, 16, 1)
    pixels = prepare(SPEC, images)
    assert pixels.shape == (10, 1, 8, 8)
    assert pixels.dtype == torch.float32
    assert pixels.is_contiguous()
    assert abs(float(pixels.mean())) < 1e-4
    assert abs(float(pixels.std()) - 1) < 1e-3


def test_images_are_resized_as_in_training():
    images = np.random.default_rng(0).integers(0, 256, (10, 16, 16, 1), np.uint8)
    expected = resized(torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255, 8)
    assert torch.allclose(prepare(SPEC, images), (expected - expected.mean()) / expected.std(), atol=1e-5)


def test_an_image_of_one_colour_gives_finite_input():
    assert bool(torch.isfinite(prepare(SPEC, np.full((2, 8, 8, 1), 7, np.uint8))).all())


def test_without_images_the_input_is_the_same_noise_each_time():
    assert torch.equal(prepare(SPEC, None), prepare(SPEC, None))
    assert prepare(SPEC, None).shape == (MAX_IMAGES, 1, 8, 8)


def test_images_of_other_channels_are_not_forced_in():
    assert prepare(SPEC, np.zeros((4, 8, 8, 3), np.uint8)).shape == (MAX_IMAGES, 1, 8, 8)


def test_a_batch_repeats_images_where_there_are_too_few():
    pixels = torch.arange(3.0)[:, None]
    assert batch(pixels, 5)[:, 0].tolist() == [0, 1, 2, 0, 1]
    assert batch(pixels, 2)[:, 0].tolist() == [0, 1]
