from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from workers.data import dataset
from workers.data.listing import DataError
from workers.settings import DataSettings

Make = Callable[..., Path]


def truncate(root: Path, count: int, name: str = "cat") -> None:
    """Whole headers, and too little behind them."""
    for number in range(count):
        path = root / name / f"{number}.png"
        path.unlink()
        jpeg = path.with_suffix(".jpg")
        Image.effect_noise((64, 64), 60).save(jpeg)
        jpeg.write_bytes(jpeg.read_bytes()[:-400])


def test_the_first_bad_images_are_named_with_the_setting_that_leaves_them_out(image_folder: Make) -> None:
    root = image_folder()
    truncate(root, 8)
    with pytest.raises(DataError) as caught:
        dataset.load(DataSettings("folder", str(root), image_size=8))
    text = str(caught.value)
    assert "cat/" in text.partition(": cannot be decoded")[0]
    assert "more be used" in text
    assert "data.max_bad: " in text


def test_so_many_bad_images_are_left_out_and_told(image_folder: Make) -> None:
    root = image_folder()
    truncate(root, 2)
    found = dataset.index(DataSettings("folder", str(root), image_size=8, max_bad=2))
    assert found.listing.notes == (
        f"2 images that cannot be used are left out (data.max_bad: 2): {root}/cat/0.jpg, {root}/cat/1.jpg",
    )
    data = dataset.decode(found)
    assert sum(len(images.labels) for images in data.splits.values()) == 18


def test_more_than_so_many_are_refused(image_folder: Make) -> None:
    root = image_folder()
    truncate(root, 3)
    with pytest.raises(
        DataError, match=r"data\.max_bad: 2: 3 images cannot be used: .*cat/0\.jpg, .*truncated"
    ):
        dataset.index(DataSettings("folder", str(root), max_bad=2))


def test_putting_up_with_bad_images_changes_nothing_where_there_are_none(image_folder: Make) -> None:
    root = str(image_folder())
    strict = dataset.index(DataSettings("folder", root))
    assert dataset.index(DataSettings("folder", root, max_bad=5)).digest == strict.digest


def test_a_class_without_a_usable_image_is_refused(image_folder: Make) -> None:
    root = image_folder()
    for path in (root / "cat").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match="cat holds no images"):
        dataset.index(DataSettings("folder", str(root), max_bad=100))


def test_what_is_left_out_of_a_folder_is_counted(image_folder: Make) -> None:
    root = image_folder()
    (root / "cat" / "._0.png").write_bytes(b"resource fork")
    (root / ".git").mkdir()
    (root / "notes.txt").write_text("x")
    (root / "dog" / "labels.csv").write_text("x")
    (root / "dog" / "deep").mkdir()
    (root / "dog" / "deep" / "Thumbs.db").write_text("x")
    Image.new("RGB", (4, 4)).save(root / "astray.png")
    assert dataset.index(DataSettings("folder", str(root))).listing.notes == (
        "files left out that are hidden: 2 (first: .git)",
        "files left out that are not images: 3 (first: dog/deep/Thumbs.db)",
        "files left out that are images in no class folder: 1 (first: astray.png)",
    )
