from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from workers.data import dataset
from workers.data.listing import DataError
from workers.data.summary import summarise
from workers.settings import DataSettings

Make = Callable[..., Path]


def settings(path: Path, **values) -> DataSettings:
    return DataSettings("folder", str(path), **values)


def test_class_folders_become_classes_and_images_come_square_in_rgb(image_folder: Make) -> None:
    data = dataset.load(settings(image_folder(), image_size=8))
    assert data.class_names == ("cat", "dog")
    assert data.splits["train"].pixels.shape == (12, 8, 8, 3)
    assert data.splits["train"].labels.tolist() == [0] * 6 + [1] * 6


def test_images_are_brought_to_64_pixels_unless_told_otherwise(image_folder: Make) -> None:
    assert summarise(settings(image_folder())).image_size == 64


def test_given_splits_are_honoured(image_folder: Make) -> None:
    found = summarise(settings(image_folder({"train": 6, "val": 3, "test": 2})))
    assert found.num_images == {"train": 12, "val": 6, "test": 4}


def test_a_split_that_is_not_given_is_drawn_from_train(image_folder: Make) -> None:
    found = summarise(settings(image_folder({"train": 10, "test": 2}), val_fraction=0.2))
    assert found.num_images == {"train": 16, "val": 4, "test": 4}


def test_a_class_named_train_is_a_class(image_folder: Make) -> None:
    root = image_folder()
    (root / "dog").rename(root / "train")
    assert summarise(settings(root)).class_names == ("cat", "train")


def test_hidden_and_other_files_are_left_out(image_folder: Make) -> None:
    root = image_folder()
    before = summarise(settings(root)).num_images
    (root / "notes.txt").write_text("x")
    (root / "cat" / "labels.csv").write_text("x")
    (root / "cat" / "._0.png").write_bytes(b"resource fork")
    (root / ".thumbnails").mkdir()
    assert summarise(settings(root)).num_images == before


def test_the_digest_moves_with_a_copy_and_changes_with_a_byte(image_folder: Make) -> None:
    first, second = image_folder(name="a"), image_folder(name="b")
    assert summarise(settings(first)).digest == summarise(settings(second)).digest
    Image.new("RGB", (16, 12)).save(second / "cat" / "0.png")
    assert summarise(settings(first)).digest != summarise(settings(second)).digest


def test_summary_and_loaded_images_have_one_digest(image_folder: Make) -> None:
    found = settings(image_folder())
    assert dataset.load(found).digest == summarise(found).digest


def test_a_rotated_photo_is_turned_upright(image_folder: Make) -> None:
    root = image_folder()
    upright = Image.new("RGB", (40, 20), "black")
    upright.paste((255, 255, 255), (0, 0, 40, 10))
    exif = Image.Exif()
    exif[0x0112] = 6
    for number in range(10):
        upright.rotate(90, expand=True).save(root / "cat" / f"{number}.png", exif=exif)
    data = dataset.load(settings(root, image_size=8))
    picture = data.splits["train"].pixels[0]
    assert picture[1].mean() > 250
    assert picture[-2].mean() < 5


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "LA", "1", "I;16"])
def test_every_colour_mode_becomes_rgb(image_folder: Make, mode: str) -> None:
    root = image_folder()
    end = "tif" if mode == "CMYK" else "png"
    grey = (
        Image.fromarray(np.full((9, 9), 128 << 8, np.uint16))
        if mode == "I;16"
        else Image.new("RGB", (9, 9), (128, 128, 128)).convert(mode)
    )
    for number in range(10):
        (root / "cat" / f"{number}.png").unlink()
        grey.save(root / "cat" / f"{number}.{end}")
    picture = dataset.load(settings(root, image_size=8)).splits["train"].pixels[0]
    assert picture.shape == (8, 8, 3)
    if mode != "1":
        assert abs(int(picture.mean()) - 128) <= 2


def test_a_truncated_image_is_named_when_it_is_decoded(image_folder: Make) -> None:
    root = image_folder()
    for number in range(10):
        path = root / "cat" / f"{number}.jpg"
        Image.effect_noise((64, 64), 60).convert("RGB").save(path)
        path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(DataError, match=r"cat/\d\.jpg: cannot be decoded"):
        dataset.load(settings(root))


@pytest.mark.parametrize("content", [b"", b"no image at all"])
def test_a_file_that_is_no_image_is_named_before_anything_is_decoded(
    image_folder: Make, content: bytes
) -> None:
    root = image_folder()
    (root / "dog" / "3.png").write_bytes(content)
    with pytest.raises(DataError, match=r"dog/3\.png"):
        summarise(settings(root))


def test_a_decompression_bomb_is_refused(image_folder: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 150)
    with pytest.raises(DataError, match="too many pixels"):
        summarise(settings(image_folder()))


def test_a_link_that_leads_in_a_circle_ends(image_folder: Make) -> None:
    root = image_folder()
    os.symlink(root / "cat", root / "cat" / "again")
    assert sum(summarise(settings(root)).num_images.values()) == 20


def only_cats(root: Path) -> None:
    (root / "dog").rename(root.parent / "dog")


def empty_dogs(root: Path) -> None:
    for path in (root / "dog").iterdir():
        path.unlink()


def no_folders(root: Path) -> None:
    for name in ("cat", "dog"):
        (root / name).rename(root.parent / name)


def split_of_another_name(root: Path) -> None:
    (root / "train").mkdir()
    (root / "cat").rename(root / "train" / "cat")
    (root / "dog").rename(root / "valid")


@pytest.mark.parametrize(
    "spoil, message",
    [
        (only_cats, "holds one class only"),
        (empty_dogs, "dog holds no images"),
        (no_folders, "holds no folders; put the images into one folder a class"),
        (split_of_another_name, "valid stands beside train/; rename it"),
    ],
)
def test_a_folder_that_cannot_be_used_is_named_with_the_remedy(
    image_folder: Make, spoil: Callable[[Path], None], message: str
) -> None:
    root = image_folder()
    spoil(root)
    with pytest.raises(DataError, match=message):
        summarise(settings(root))


def test_a_class_that_train_lacks_is_named(image_folder: Make) -> None:
    root = image_folder({"train": 5, "val": 2})
    (root / "val" / "dog").rename(root / "val" / "dgo")
    with pytest.raises(DataError, match="class 'dgo' is in"):
        summarise(settings(root))


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere is not a folder"):
        summarise(settings(tmp_path / "nowhere"))
