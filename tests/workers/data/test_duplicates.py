from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from workers.data import duplicates
from workers.data.duplicates import Overlap, overlaps


def pictures(count: int, side: int = 32, seed: int = 0) -> np.ndarray:
    """Smooth ones, as photos are."""
    if count == 0:
        return np.empty((0, side, side, 3), np.uint8)
    coarse = np.random.default_rng(seed).integers(0, 256, (count, 6, 6, 3), np.uint8)
    images = [Image.fromarray(picture).resize((side, side), Image.Resampling.BICUBIC) for picture in coarse]
    return np.stack([np.asarray(image) for image in images])


def split(train: np.ndarray, val: np.ndarray, test: np.ndarray | None = None) -> dict[str, np.ndarray]:
    return {"train": train, "val": val, "test": train[:0] if test is None else test}


def jpeg(picture: np.ndarray) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "jpeg", quality=85)
    return np.asarray(Image.open(file))


def resized(picture: np.ndarray) -> np.ndarray:
    larger = Image.fromarray(picture).resize((50, 50), Image.Resampling.BICUBIC)
    return np.asarray(larger.resize(picture.shape[:2], Image.Resampling.BICUBIC))


def brighter(picture: np.ndarray) -> np.ndarray:
    return (picture * 0.8 + 40).astype(np.uint8)


def mirrored(picture: np.ndarray) -> np.ndarray:
    return picture[:, ::-1]


def test_the_same_pixels_are_counted_in_every_pair_of_splits() -> None:
    train, others = pictures(40), pictures(30, seed=1)
    val, test = np.concatenate([train[:4], others[:10]]), np.concatenate([train[10:12], others[8:20]])
    assert overlaps(split(train, val, test)) == (
        Overlap("val", "train", exact=4, near=0, num_images=14),
        Overlap("test", "train", exact=2, near=0, num_images=14),
        Overlap("test", "val", exact=2, near=0, num_images=14),
    )


@pytest.mark.parametrize(("change", "count"), [(jpeg, 50), (resized, 50), (brighter, 50), (mirrored, 0)])
def test_a_picture_stored_again_is_near_and_a_mirrored_one_is_not(change, count: int) -> None:
    train = pictures(50)
    found = overlaps(split(train, np.stack([change(picture) for picture in train])))[0]
    assert (found.exact, found.near) == (0, count)


def test_no_near_pair_is_missed_that_a_comparison_of_all_pairs_finds(monkeypatch) -> None:
    train = pictures(300)
    noise = np.random.default_rng(3).normal(0, 1, train.shape)
    strength = np.linspace(1, 60, len(train))[:, None, None, None]
    val = (train + noise * strength).clip(0, 255).astype(np.uint8)
    monkeypatch.setattr(duplicates, "_QUERIES", 7)
    first, second = (duplicates._reduce(part, lambda: None).grids for part in (val, train))
    expected = int(((first @ second.T) >= duplicates.CORRELATION).any(1).sum())
    assert 0 < expected < 300
    assert overlaps(split(train, val))[0].near == expected


def test_different_pictures_of_a_flat_colour_are_no_duplicates() -> None:
    train = np.stack([np.full((32, 32, 3), value, np.uint8) for value in (10, 20)])
    val = np.stack([np.full((32, 32, 3), value, np.uint8) for value in (20, 30)])
    found = overlaps(split(train, val))[0]
    assert (found.exact, found.near) == (1, 0)


def test_tiny_pictures_are_compared_exactly_alone() -> None:
    train = pictures(20, side=8)
    val = np.concatenate([train[:2], train[2:4] ^ 1])
    found = overlaps(split(train, val))[0]
    assert (found.exact, found.near) == (2, 0)


def test_an_empty_split_overlaps_nothing() -> None:
    assert [found.share for found in overlaps(split(pictures(3), pictures(0)))] == [0, 0, 0]
