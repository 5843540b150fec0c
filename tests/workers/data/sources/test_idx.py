from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from workers.data import dataset
from workers.data.listing import DataError
from workers.data.summary import summarise
from workers.settings import DataSettings

FASHION = Path("/usr/share/datasets/fashion-mnist")
Make = Callable[..., Path]


def settings(path: Path, **values) -> DataSettings:
    return DataSettings("idx", str(path), **values)


def test_the_given_test_split_is_kept_and_validation_is_taken_from_train(idx_folder: Make) -> None:
    data = dataset.load(settings(idx_folder(), val_fraction=0.2))
    assert {name: len(split.labels) for name, split in data.splits.items()} == {
        "train": 48,
        "val": 12,
        "test": 20,
    }
    assert (data.image_size, data.channels, data.class_names) == (6, 1, ("0", "1", "2", "3"))


def test_without_test_files_the_test_split_is_drawn(idx_folder: Make) -> None:
    found = summarise(settings(idx_folder(with_test=False), val_fraction=0.2, test_fraction=0.2))
    assert found.num_images == {"train": 36, "val": 12, "test": 12}


def test_plain_files_below_the_path_give_the_same_digest_as_gzipped_ones(idx_folder: Make) -> None:
    gzipped, plain = idx_folder("gzipped"), idx_folder("outer", end="").parent / "outer"
    (plain.parent / "deep" / "er").mkdir(parents=True)
    plain.rename(plain.parent / "deep" / "er" / "mnist")
    assert summarise(settings(gzipped)).digest == summarise(settings(plain.parent / "deep")).digest


def test_files_that_changed_are_read_again(idx_folder: Make) -> None:
    folder = idx_folder(end="")
    before = summarise(settings(folder)).digest
    path = folder / "train-images-idx3-ubyte"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data + b"")
    path.touch()
    assert summarise(settings(folder)).digest != before


def break_magic(path: Path) -> None:
    path.write_bytes(gzip.compress(b"\0\0\x0d\x03" + gzip.decompress(path.read_bytes())[4:]))


def shorten(path: Path) -> None:
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:-5]))


def cut_gzip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    "spoil, message",
    [
        (Path.unlink, "lacks train-images"),
        (break_magic, "no MNIST-format file"),
        (shorten, "2160 bytes announced and 2155 there"),
        (cut_gzip, "cannot be read"),
        (lambda path: path.write_bytes(b""), "no MNIST-format file|cannot be read"),
    ],
)
def test_a_broken_file_is_named(idx_folder: Make, spoil: Callable[[Path], object], message: str) -> None:
    folder = idx_folder()
    spoil(folder / "train-images-idx3-ubyte.gz")
    with pytest.raises(DataError, match=message) as caught:
        summarise(settings(folder))
    assert "train-images" in str(caught.value)


def test_missing_and_empty_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere is not a folder"):
        summarise(settings(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="holds no train-images-idx3-ubyte"):
        summarise(settings(tmp_path))


def test_two_sets_below_one_path_are_refused(idx_folder: Make, tmp_path: Path) -> None:
    idx_folder("first")
    idx_folder("second")
    with pytest.raises(DataError, match="name one folder"):
        summarise(settings(tmp_path))


def test_fashion_mnist_of_the_distribution_is_read(needs: Callable[[str, bool], None]) -> None:
    needs("Debian's package dataset-fashion-mnist", FASHION.is_dir())
    found = settings(FASHION, val_fraction=0.1, train_limit=500, val_limit=100)
    data = dataset.load(found)
    assert {name: len(split.labels) for name, split in data.splits.items()} == {
        "train": 500,
        "val": 100,
        "test": 10_000,
    }
    assert np.bincount(data.splits["train"].labels).tolist() == [50] * 10
    assert 60 < data.splits["train"].pixels.mean() < 85
    assert data.digest == summarise(found).digest
