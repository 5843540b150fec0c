from __future__ import annotations

from workers.data import dataset
from workers.settings import DataSettings


def test_digits_are_scikit_learns_images_scaled_to_bytes() -> None:
    data = dataset.load(DataSettings("digits"))
    assert (data.image_size, data.channels, len(data.class_names)) == (8, 1, 10)
    assert sum(len(split.labels) for split in data.splits.values()) == 1797
    assert data.splits["train"].pixels.min() == 0
    assert data.splits["train"].pixels.max() == 255


def test_digits_come_at_the_size_that_is_asked_for() -> None:
    data = dataset.load(DataSettings("digits", image_size=16, train_limit=20))
    assert data.splits["train"].pixels.shape == (20, 16, 16, 1)
