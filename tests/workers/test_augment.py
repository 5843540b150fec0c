from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as reference

from workers import augment
from workers.augment import GEOMETRY, PIXELS, RandAugment, matrix, operations, warp

FILL = torch.zeros(3, 1, 1)


def pictures(count: int = 6, channels: int = 3, side: int = 12) -> Tensor:
    values = np.random.default_rng(0).integers(0, 256, (count, channels, side, side))
    return torch.from_numpy(values).float()


def levels(*values: float) -> Tensor:
    return torch.tensor(values)[:, None, None, None]


def changed(name: str, images: Tensor, level: float) -> Tensor:
    """One operation on all images."""
    if name in PIXELS:
        return PIXELS[name](images, levels(*[level] * len(images)))
    fill = torch.zeros(images.shape[1], 1, 1)
    return warp(images, torch.tensor([matrix(name, level)] * len(images)).float(), fill)


FACTORS = {
    "brightness": reference.adjust_brightness,
    "contrast": reference.adjust_contrast,
    "colour": reference.adjust_saturation,
    "sharpness": reference.adjust_sharpness,
}


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("level", [-1.0, -0.3, 0.5, 1.0])
def test_blends_are_those_of_torchvision(name: str, level: float) -> None:
    images = pictures()
    expected = FACTORS[name](images / 255, 1 + 0.9 * level) * 255
    assert torch.allclose(changed(name, images, level), expected, atol=0.1)


def test_each_image_of_a_batch_is_changed_by_its_own_level() -> None:
    """Whatever the operation, a batch gives what its images give one by one."""
    images, mixed = pictures(), levels(-1.0, -0.5, 0.0, 0.2, 0.6, 1.0)
    for name, change in PIXELS.items():
        together = change(images, mixed)
        alone = [change(images[i : i + 1], mixed[i : i + 1])[0] for i in range(len(images))]
        assert torch.equal(together, torch.stack(alone)), name


def test_equalizing_is_that_of_torchvision_also_where_values_are_few() -> None:
    images = pictures()
    images[1] = 7.0
    images[2] = (images[2] > 100) * 90.0
    images[3] = images[3].div(50).floor() * 10 + 40
    expected = reference.equalize(images.to(torch.uint8)).float()
    assert torch.equal(changed("equalize", images, 1.0), expected)


def test_contrast_is_stretched_as_by_torchvision_and_a_constant_channel_stays() -> None:
    images = pictures().div(4).floor()
    images[1, 0] = 7.0
    expected = reference.autocontrast(images / 255) * 255
    assert torch.allclose(changed("autocontrast", images, 1.0), expected, atol=0.01)


@pytest.mark.parametrize(("level", "bits"), [(0.0, 4), (0.3, 3), (-0.6, 2), (0.9, 1), (1.0, 1)])
def test_posterizing_keeps_fewer_bits_the_stronger_it_is(level: float, bits: int) -> None:
    images = pictures()
    expected = reference.posterize(images.to(torch.uint8), bits).float()
    assert torch.equal(changed("posterize", images, level), expected)


@pytest.mark.parametrize(("level", "threshold"), [(0.0, 256.0), (0.5, 128.0), (-0.9, 26.0), (1.0, 0.0)])
def test_solarizing_inverts_what_is_above_a_threshold_that_falls(level: float, threshold: float) -> None:
    images = pictures()
    found = changed("solarize", images, level)
    assert torch.equal(found, torch.where(images >= threshold, 255 - images, images))


def test_adding_brightens_only_what_is_dark() -> None:
    images = pictures()
    found = changed("solarize_add", images, -1.0)
    assert torch.equal(found[images >= 128], images[images >= 128])
    assert torch.equal(found[images < 128], images[images < 128] + 110)


@pytest.mark.parametrize("level", [-1.0, 0.4])
def test_images_turn_about_their_centre_as_by_torchvision(level: float) -> None:
    images = pictures(side=13)
    expected = reference.rotate(images, 20 * level, InterpolationMode.BILINEAR)
    assert torch.allclose(changed("rotate", images, level), expected, atol=0.05)


def test_a_shift_goes_a_fifth_of_the_side_at_the_most_and_is_filled() -> None:
    images = pictures(side=10)
    fill = torch.tensor([1.0, 2.0, 3.0])[:, None, None]
    moved = warp(images, torch.tensor([matrix("shift_x", 1.0)] * len(images)).float(), fill)
    assert torch.allclose(moved[..., :-2], images[..., 2:], atol=1e-3)
    assert torch.allclose(moved[..., -2:], fill.expand(3, 10, 2), atol=1e-3)


@pytest.mark.parametrize("name", GEOMETRY)
def test_nothing_is_moved_far_enough_to_become_something_else(name: str) -> None:
    found = np.array(matrix(name, 1.0))
    assert np.abs(found[:, :2] - np.eye(2)).max() <= max(np.sin(np.radians(20)), 0.2) + 1e-9
    assert np.abs(found[:, 2]).max() <= 0.4
    assert np.linalg.det(found[:, :2]) > 0


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", operations(3))
def test_two_copies_of_one_image_come_out_different(
    name: str, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With this operation alone; those that have no strength are applied to some and not to others."""
    if name == "colour" and channels == 1:
        pytest.skip("there are no colours")
    monkeypatch.setattr(augment, "PIXELS", {name: PIXELS[name]} if name in PIXELS else {})
    monkeypatch.setattr(augment, "GEOMETRY", (name,) if name in GEOMETRY else ())
    images = pictures(1, channels, 20).mul(0.67).add(40).floor().expand(32, -1, -1, -1).contiguous()
    found = RandAugment(5.0, 1)(images, FILL[:channels], np.random.default_rng(0))
    assert len({image.numpy().tobytes() for image in found}) >= 2
    if name not in ("autocontrast", "equalize", "invert", "posterize"):
        assert len({image.numpy().tobytes() for image in found}) > 8


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_any_number_of_channels_stays_in_range(channels: int) -> None:
    images = pictures(64, channels, 8)
    found = RandAugment(10.0, 3)(images, torch.full((channels, 1, 1), 30.0), np.random.default_rng(0))
    assert found.shape == (64, channels, 8, 8)
    assert -1e-3 <= found.min() <= found.max() <= 255 + 1e-3
    assert ("colour" in operations(channels)) == (channels == 3)


def test_grey_images_keep_grey_channels_equal() -> None:
    images = pictures(64, 1).expand(-1, 3, -1, -1).contiguous()
    found = RandAugment(9.0, 2)(images, FILL, np.random.default_rng(0))
    assert torch.allclose(found, found[:, :1].expand_as(found), atol=1e-2)


def test_what_is_drawn_follows_the_generator_alone() -> None:
    torch.manual_seed(1)
    first = RandAugment(9.0, 2)(pictures(32), FILL, np.random.default_rng(5))
    torch.manual_seed(2)
    again = RandAugment(9.0, 2)(pictures(32), FILL, np.random.default_rng(5))
    other = RandAugment(9.0, 2)(pictures(32), FILL, np.random.default_rng(6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_about_half_of_the_images_are_left_as_they_are_by_one_operation() -> None:
    images = pictures(1).expand(1000, -1, -1, -1).contiguous()
    found = RandAugment(9.0, 1)(images.clone(), FILL, np.random.default_rng(0))
    same = (found == images).flatten(1).all(1).float().mean()
    assert 0.45 < same < 0.55


def test_a_larger_magnitude_changes_images_more() -> None:
    images = pictures(500)
    far = [
        (RandAugment(magnitude, 2)(images.clone(), FILL, np.random.default_rng(0)) - images).abs().mean()
        for magnitude in (1.0, 5.0, 9.0)
    ]
    assert far[0] < far[1] < far[2]
