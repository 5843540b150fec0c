from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from workers.data import dataset
from workers.data.listing import DataError
from workers.data.summary import summarise
from workers.settings import DataSettings


def pixels(count: int, shape: tuple[int, ...] = (8, 8, 3)) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, *shape), np.uint8)


def labels(count: int, num_classes: int = 2) -> np.ndarray:
    return np.arange(count) % num_classes


def saved(folder: Path, **arrays: np.ndarray) -> DataSettings:
    np.savez_compressed(folder / "x.npz", allow_pickle=True, **arrays)
    return DataSettings("npz", str(folder / "x.npz"))


def test_images_and_labels_are_split_and_come_as_they_are(tmp_path: Path) -> None:
    stored = pixels(40)
    data = dataset.load(saved(tmp_path, images=stored, labels=labels(40)))
    assert (data.image_size, data.channels, data.class_names) == (8, 3, ("0", "1"))
    everything = np.concatenate([images.pixels for images in data.splits.values()])
    assert {image.tobytes() for image in everything} == {image.tobytes() for image in stored}


@pytest.mark.parametrize(
    "names",
    [
        ("x_{}", "y_{}", "train", "valid", "test"),
        ("{}_images", "{}_labels", "train", "val", "test"),
        ("images_{}", "labels_{}", "train", "validation", "test"),
        ("X_{}", "Y_{}", "train", "dev", "test"),
    ],
)
def test_splits_are_taken_by_their_names(names, tmp_path: Path) -> None:
    images, classes, *splits = names
    counts = dict(zip(splits, (20, 6, 8), strict=True))
    arrays = {images.format(split): pixels(count, (8, 8)) for split, count in counts.items()}
    arrays |= {classes.format(split): labels(count)[:, None] for split, count in counts.items()}
    data = dataset.load(saved(tmp_path, **arrays))
    assert {name: len(split.labels) for name, split in data.splits.items()} == {
        "train": 20,
        "val": 6,
        "test": 8,
    }
    assert np.array_equal(data.splits["test"].pixels[..., 0], arrays[images.format("test")])


def test_classes_are_matched_by_name_across_splits(tmp_path: Path) -> None:
    found = saved(
        tmp_path,
        x_train=pixels(20),
        y_train=np.array(["dog", "cat"] * 10),
        x_test=pixels(2),
        y_test=np.array(["cat", "cat"]),
    )
    data = dataset.load(found)
    assert data.class_names == ("cat", "dog")
    assert data.splits["test"].labels.tolist() == [0, 0]


def test_class_names_name_the_numbers(tmp_path: Path) -> None:
    found = saved(tmp_path, images=pixels(20), labels=labels(20), class_names=np.array(["tulip", "rose"]))
    assert summarise(found).class_names == ("tulip", "rose")


def test_numbered_classes_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    found = summarise(saved(tmp_path, images=pixels(110), labels=labels(110, 11)))
    assert found.class_names == tuple(map(str, range(11)))


def test_a_changed_pixel_changes_the_digest(tmp_path: Path) -> None:
    stored = pixels(20)
    before = summarise(saved(tmp_path, images=stored, labels=labels(20))).digest
    stored[0, 0, 0, 0] ^= 1
    assert summarise(saved(tmp_path, images=stored, labels=labels(20))).digest != before


class Trap:
    """Leaves a file where it is unpickled."""

    def __reduce__(self):
        return (open, ("trapped", "w"))


GOOD = {"images": pixels(20), "labels": labels(20)}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (GOOD | {"labels": labels(19)}, "labels: 19 labels for 20 images"),
        (GOOD | {"images": pixels(20).astype(np.float32)}, "holds float32; store pixels as uint8"),
        (GOOD | {"images": pixels(20, (3, 8, 8))}, "channels first; transpose"),
        (GOOD | {"images": pixels(20, (8, 8, 4))}, "has shape"),
        (GOOD | {"labels": np.linspace(0, 1, 20)}, "needs a class an image"),
        (GOOD | {"labels": np.zeros(20, int)}, "one class only"),
        (GOOD | {"class_names": np.array(["a"])}, "1 is no position in class_names, of 1 names"),
        (GOOD | {"x_test": pixels(4), "y_test": labels(4)}, "images of no split beside those of test"),
        ({"images": pixels(20)}, "images and labels of 'all' are not both there"),
        ({"foo": pixels(20)}, "no images; it holds foo: name arrays images and labels"),
        ({"x_val": pixels(4), "y_val": labels(4)}, "but no training split"),
        (
            {"x_train": pixels(20), "y_train": labels(20), "x_val": pixels(4), "y_val": labels(4, 4)},
            "y_val holds classes that the training images lack: '2', '3'",
        ),
        (GOOD | {"labels": np.array([Trap()] * 20, object)}, "holds Python objects, which are not loaded"),
    ],
)
def test_arrays_that_cannot_be_used_are_named_with_the_remedy(arrays, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        dataset.load(saved(tmp_path, **arrays))
    assert not (tmp_path / "trapped").exists()


def test_an_array_that_announces_more_than_there_is_is_refused_unread(tmp_path: Path) -> None:
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("images.npy", header.ljust(127) + b"\n")
    with pytest.raises(DataError, match=r"images\.npy announces 1,000,000,000,000 bytes, not 0"):
        summarise(DataSettings("npz", str(tmp_path / "x.npz")))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"text"])
def test_a_file_that_is_no_npz_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.npz: cannot be read .*; write it again"):
        summarise(DataSettings("npz", str(tmp_path / "x.npz")))
