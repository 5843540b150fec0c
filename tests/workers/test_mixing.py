from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from timm.data.mixup import Mixup
from timm.data.random_erasing import RandomErasing
from torch import Tensor

from workers.mixing import Erasing, Mixing, cutmix_boxes, erasing_boxes, inside

CPU = torch.device("cpu")
COUNT = 4000


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def noise(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def halves(count: int = 64) -> tuple[Tensor, Tensor]:
    """Images of 0 in the first half of a batch and of 1 in the second, and these as labels."""
    labels = (torch.arange(count) >= count / 2).long()
    return labels[:, None, None, None].expand(-1, 1, 8, 8).float().contiguous(), labels


@pytest.mark.parametrize(("mixup", "cutmix"), [(0.8, 0.0), (0.0, 1.0), (0.8, 1.0)])
def test_targets_say_how_much_of_each_class_an_image_shows(mixup: float, cutmix: float) -> None:
    images, labels = halves()
    mixed, targets = Mixing(mixup, cutmix, 2)(images, labels, rng())
    assert torch.allclose(targets.sum(1), torch.ones(len(labels)))
    assert torch.allclose(mixed.mean((1, 2, 3)), targets[:, 1], atol=1e-6)


def test_mixup_blends_all_pixels_alike_and_cutmix_keeps_them_whole() -> None:
    images, labels = halves()
    blended, _ = Mixing(0.8, 0.0, 2)(images, labels, rng())
    assert (blended.flatten(1).std(1) < 1e-6).all()
    cut, _ = Mixing(0.0, 1.0, 2)(images, labels, rng())
    assert set(cut.unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize(("mixup", "cutmix"), [(0.8, 0.0), (0.0, 1.0)])
def test_copies_of_one_image_are_mixed_differently(mixup: float, cutmix: float) -> None:
    images, labels = halves()
    mixed, _ = Mixing(mixup, cutmix, 2)(images, labels, rng())
    assert len({image.numpy().tobytes() for image in mixed[:32]}) > 20


def test_with_both_about_half_of_the_images_are_cut() -> None:
    images, labels = halves(2000)
    mixed, _ = Mixing(0.8, 1.0, 2)(images, labels, rng())
    blended = ((mixed > 0.001) & (mixed < 0.999)).flatten(1).any(1).float().mean()
    assert 0.4 < blended < 0.55


@pytest.mark.parametrize(("mixup", "cutmix"), [(0.8, 0.0), (0.0, 1.0), (0.3, 0.0)])
def test_shares_are_spread_as_by_timm(mixup: float, cutmix: float) -> None:
    images, labels = halves(COUNT)
    _, ours = Mixing(mixup, cutmix, 2)(images, labels, rng())
    np.random.seed(0)
    theirs = Mixup(mixup, cutmix, mode="elem", label_smoothing=0.0, num_classes=2)
    _, expected = theirs(images, labels)
    for quantile in (0.1, 0.25, 0.5, 0.75, 0.9):
        found = ours[: COUNT // 2, 0].quantile(quantile)
        assert found == pytest.approx(expected[: COUNT // 2, 0].quantile(quantile).item(), abs=0.05)


def test_a_batch_of_an_odd_number_is_mixed_too() -> None:
    images, labels = halves(7)
    mixed, targets = Mixing(0.8, 1.0, 2)(images, labels, rng())
    assert torch.allclose(mixed.mean((1, 2, 3)), targets[:, 1], atol=1e-6)


def test_boxes_of_cutmix_leave_the_share_that_they_say() -> None:
    shares = rng(1).random(200)
    boxes, left = cutmix_boxes(shares, 28, rng())
    assert torch.allclose((~inside(boxes, 28, CPU)).double().mean((1, 2, 3)), torch.from_numpy(left))
    assert (left >= shares - 1e-9).all()


@pytest.mark.parametrize("side", [4, 8, 28, 64])
def test_boxes_to_erase_lie_inside_and_hold_between_a_fiftieth_and_a_third(side: int) -> None:
    boxes = erasing_boxes(500, side, rng())
    assert (boxes >= 0).all()
    assert (boxes <= side).all()
    areas = inside(boxes, side, CPU).double().mean((1, 2, 3))
    rounding = 2 * side * 0.5 / side**2 * side  # half a pixel along both sides
    assert areas.max() <= 1 / 3 + rounding / side
    assert side < 28 or areas.min() >= 0.01


def test_erased_areas_are_spread_as_by_timm() -> None:
    images = torch.full((COUNT, 1, 28, 28), 100.0)
    ours = Erasing(0.25)(images.clone(), rng(), noise())
    random.seed(0)
    theirs = RandomErasing(0.25, mode="pixel", device="cpu")(images.clone())
    areas = [(found != 100).float().mean((1, 2, 3)) for found in (ours, theirs)]
    for found in areas:
        assert 0.22 < (found > 0).float().mean() < 0.28
    mean, expected = (found[found > 0].mean().item() for found in areas)
    assert mean == pytest.approx(expected, abs=0.01)


def test_erased_pixels_are_noise_and_the_others_stay() -> None:
    images = torch.full((COUNT, 3, 8, 8), 100.0)
    found = Erasing(1.0)(images, rng(), noise())
    erased = found[found != 100]
    assert erased.mean().abs() < 0.01
    assert erased.std() == pytest.approx(1.0, abs=0.01)


def test_copies_of_one_image_are_erased_differently() -> None:
    images = torch.zeros(32, 1, 8, 8)
    found = Erasing(1.0)(images, rng(), noise())
    assert len({image.numpy().tobytes() for image in found}) == 32


def test_what_is_drawn_follows_the_generators_alone() -> None:
    images, labels = halves()
    random.seed(1)
    np.random.seed(1)
    first = Erasing(0.5)(images.clone(), rng(), noise()), *Mixing(0.8, 1.0, 2)(images, labels, rng())
    random.seed(2)
    np.random.seed(2)
    again = Erasing(0.5)(images.clone(), rng(), noise()), *Mixing(0.8, 1.0, 2)(images, labels, rng())
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
