from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from workers.data import dataset, inspection
from workers.data.inspection import Inspection, inspect
from workers.data.listing import DataError
from workers.settings import DataSettings

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PARETOVIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def look(root: Path, **values) -> Inspection:
    settings = DataSettings("folder", str(root), image_size=16, **values)
    return inspect(dataset.index(settings), settings)


def test_clean_images_give_no_warning_and_are_decoded_into_the_cache(image_folder: Make, cache: Path) -> None:
    seen = look(image_folder())
    assert seen.warnings == ()
    assert seen.notes == (f"under 1 MB of pixels, decoded once and kept in {cache / 'decoded'}",)
    assert len(list(cache.glob("decoded/*.pixels"))) == 1


def test_images_in_two_splits_are_a_warning(image_folder: Make) -> None:
    root = image_folder({"train": 10, "val": 5, "test": 5})
    shutil.copy(root / "train" / "cat" / "3.png", root / "val" / "cat" / "0.png")
    seen = look(root)
    assert seen.warnings == ("10.00% of the val images are in train too: 1 the same pixels, 0 nearly",)


def test_few_images_in_two_splits_are_a_note(image_folder: Make, monkeypatch) -> None:
    root = image_folder({"train": 10, "val": 5, "test": 5})
    shutil.copy(root / "train" / "cat" / "3.png", root / "test" / "cat" / "0.png")
    monkeypatch.setattr(inspection, "WORRYING_SHARE", 0.1)
    seen = look(root)
    assert seen.warnings == ()
    assert seen.notes[-1] == "10.00% of the test images are in train too: 1 the same pixels, 0 nearly"


def test_uneven_classes_are_told(image_folder: Make) -> None:
    root = image_folder({"train": 10, "val": 2, "test": 2})
    for number in range(7):
        (root / "train" / "dog" / f"{number}.png").unlink()
    told = "classes are uneven: 3 training images of 'dog', 10 of 'cat'; data.balance: sampler or loss"
    assert any(text.startswith(told) for text in look(root).notes)
    assert not any("classes are uneven" in text for text in look(root, balance="loss").notes)


@pytest.mark.parametrize("balance", ["sampler", "loss"])
def test_balance_is_refused_where_classes_are_even(image_folder: Make, balance) -> None:
    with pytest.raises(
        DataError, match=f"data.balance: {balance}: every class has 6 training images already"
    ):
        look(image_folder(), balance=balance)


@pytest.mark.parametrize("splits", [{"train": 5, "val": 2, "test": 2}, {"train": 5, "val": 2}])
def test_a_class_with_one_image_to_learn_from_is_refused_by_name(image_folder: Make, splits) -> None:
    root = image_folder(splits)
    for number in range(4):
        (root / "train" / "dog" / f"{number}.png").unlink()
    with pytest.raises(DataError, match="class 'dog' has 1 image"):
        look(root)


def test_of_very_many_pictures_a_part_is_looked_at_and_that_is_told(
    image_folder: Make, cache, monkeypatch
) -> None:
    monkeypatch.setattr(inspection, "MOST_DECODED", 10)
    seen = look(image_folder())
    assert "duplicates were looked for among 10 of 20 images" in seen.notes
    assert "under 1 MB of pixels, decoded when training begins" in seen.notes
    assert not list(cache.glob("decoded/*.pixels"))


def test_without_a_cache_images_are_kept_in_memory(image_folder: Make, monkeypatch) -> None:
    monkeypatch.setenv("PARETOVIT_CACHE", "off")
    assert look(image_folder()).notes == ("under 1 MB of pixels, kept in memory",)
