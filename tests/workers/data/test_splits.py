from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.data import splits
from workers.data.listing import DataError, Listing
from workers.settings import DataSettings


def listing(counts: list[int], given: str = "") -> Listing:
    labels = np.repeat(np.arange(len(counts)), counts)
    return Listing(
        class_names=tuple(f"class{number}" for number in range(len(counts))),
        labels=labels,
        given=np.full(len(labels), given, "U5"),
        image_size=8,
        channels=1,
        content="00",
        decode=lambda indices, beat: np.zeros((len(indices), 8, 8, 1), np.uint8),
    )


@given(
    counts=st.lists(st.integers(3, 60), min_size=2, max_size=8),
    val=st.floats(0.01, 0.45),
    test=st.floats(0.01, 0.45),
    seed=st.integers(0, 9),
)
def test_every_image_is_in_one_split_and_every_class_in_all(
    counts: list[int], val: float, test: float, seed: int
) -> None:
    source = listing(counts)
    found = splits.assign(source, DataSettings("digits", val_fraction=val, test_fraction=test, seed=seed))
    assert np.array_equal(np.sort(np.concatenate(list(found.values()))), np.arange(len(source.labels)))
    for chosen in found.values():
        assert len(np.unique(source.labels[chosen])) == len(counts)


def test_splits_are_stratified() -> None:
    source = listing([100, 300])
    found = splits.assign(source, DataSettings("digits", val_fraction=0.2, test_fraction=0.1))
    assert {name: np.bincount(source.labels[chosen]).tolist() for name, chosen in found.items()} == {
        "train": [70, 210],
        "val": [20, 60],
        "test": [10, 30],
    }


@given(counts=st.lists(st.integers(3, 400), min_size=2, max_size=8), limit=st.integers(8, 200))
def test_a_limit_is_met_exactly_and_keeps_every_class(counts: list[int], limit: int) -> None:
    source = listing(counts)
    whole = splits.assign(source, DataSettings("digits"))["train"]
    limited = splits.assign(source, DataSettings("digits", train_limit=limit))["train"]
    assert len(limited) == min(limit, len(whole))
    assert set(limited) <= set(whole)
    assert len(np.unique(source.labels[limited])) == len(counts)


def test_a_limit_leaves_the_other_splits_as_they_were() -> None:
    source = listing([50, 50])
    whole = splits.assign(source, DataSettings("digits"))
    limited = splits.assign(source, DataSettings("digits", train_limit=10))
    assert np.array_equal(whole["val"], limited["val"])
    assert np.array_equal(whole["test"], limited["test"])


def test_a_limit_below_the_number_of_classes_is_refused() -> None:
    with pytest.raises(DataError, match=r"data\.val_limit: 2 is below the number of classes; use 3 or more"):
        splits.assign(listing([20, 20, 20]), DataSettings("digits", val_limit=2))


def test_a_class_with_too_few_images_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="class 'class1' has 2 images, too few for train and val and test"):
        splits.assign(listing([20, 2]), DataSettings("digits"))


def test_the_same_seed_draws_the_same_splits_and_another_seed_others() -> None:
    source = listing([50, 50])
    digests = [
        splits.digest(source, splits.assign(source, DataSettings("digits", seed=seed))) for seed in (0, 0, 1)
    ]
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == 32
