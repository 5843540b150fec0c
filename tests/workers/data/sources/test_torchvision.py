from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torchvision import datasets

from workers.data import dataset
from workers.data.listing import DataError
from workers.data.sources import torchvision
from workers.data.summary import summarise
from workers.settings import DataSettings


@pytest.fixture(autouse=True)
def _opened_anew() -> None:
    torchvision._opened.cache_clear()


def idx(path: Path, array: np.ndarray) -> None:
    shape = b"".join(side.to_bytes(4, "big") for side in array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + shape + array.astype(np.uint8).tobytes())


def test_mnist_comes_with_its_splits_and_the_names_of_its_classes(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (80, 28, 28), np.uint8)
    for prefix, part in (("train", slice(0, 60)), ("t10k", slice(60, 80))):
        idx(tmp_path / "MNIST" / "raw" / f"{prefix}-images-idx3-ubyte", images[part])
        idx(tmp_path / "MNIST" / "raw" / f"{prefix}-labels-idx1-ubyte", np.arange(80)[part] % 10)
    data = dataset.load(DataSettings("torchvision", str(tmp_path), name="MNIST"))
    assert data.class_names[:2] == ("0 - zero", "1 - one")
    assert (data.image_size, data.channels) == (28, 1)
    assert np.array_equal(data.splits["test"].pixels[..., 0], images[60:])
    assert data.splits["test"].labels.tolist() == [number % 10 for number in range(60, 80)]


def test_cifar_10_comes_with_its_colours(tmp_path: Path, monkeypatch) -> None:
    images = np.random.default_rng(0).integers(0, 256, (120, 3, 32, 32), np.uint8)
    root = tmp_path / "cifar-10-batches-py"
    root.mkdir()

    def written(name: str, content: dict) -> list[str]:
        (root / name).write_bytes(pickle.dumps(content))
        return [name, hashlib.md5((root / name).read_bytes()).hexdigest()]

    train = {"data": images[:100].reshape(100, -1), "labels": [number % 10 for number in range(100)]}
    test = {"data": images[100:].reshape(20, -1), "labels": [number % 10 for number in range(20)]}
    names = ["plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    _, sum_of_names = written("batches.meta", {"label_names": names})
    monkeypatch.setattr(datasets.CIFAR10, "train_list", [written("data_batch_1", train)])
    monkeypatch.setattr(datasets.CIFAR10, "test_list", [written("test_batch", test)])
    monkeypatch.setattr(datasets.CIFAR10, "meta", {**datasets.CIFAR10.meta, "md5": sum_of_names})
    data = dataset.load(DataSettings("torchvision", str(tmp_path), name="CIFAR10"))
    assert data.class_names == tuple(names)
    assert np.array_equal(data.splits["test"].pixels, images[100:].transpose(0, 2, 3, 1))


def test_a_pickle_that_is_not_the_published_one_is_not_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "trapped"), "w"))

    root = tmp_path / "cifar-10-batches-py"
    root.mkdir()
    for name, _ in [*datasets.CIFAR10.train_list, *datasets.CIFAR10.test_list, ("batches.meta", "")]:
        (root / name).write_bytes(pickle.dumps(Trap(), protocol=0))
    with pytest.raises(
        DataError, match=r"data\.name: CIFAR10: its files cannot be used .*data\.download: true"
    ):
        summarise(DataSettings("torchvision", str(tmp_path), name="CIFAR10"))
    assert not (tmp_path / "trapped").exists()


def test_pictures_in_files_are_decoded_as_those_of_a_folder_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("Forest", "River"):
        (tmp_path / "eurosat" / "2750" / name).mkdir(parents=True)
        for number in range(10):
            picture = Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8))
            picture.save(tmp_path / "eurosat" / "2750" / name / f"{number}.png")
    data = dataset.load(DataSettings("torchvision", str(tmp_path), name="EuroSAT", image_size=16))
    folder = dataset.load(DataSettings("folder", str(tmp_path / "eurosat" / "2750"), image_size=16))
    assert data.class_names == ("Forest", "River")
    assert np.array_equal(data.splits["val"].pixels, folder.splits["val"].pixels)


def test_what_is_not_on_the_disk_is_named_with_the_setting_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.name: KMNIST: .*or set data\.download: true"):
        summarise(DataSettings("torchvision", str(tmp_path), name="KMNIST"))
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_not_known_lists_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.name: 'CIFAR11' .*; there are: CIFAR10, CIFAR100"):
        summarise(DataSettings("torchvision", str(tmp_path), name="CIFAR11"))


@pytest.mark.parametrize("name", sorted(torchvision.SPLITS_OF))
def test_every_name_is_one_of_torchvision(name: str) -> None:
    assert name in datasets.__all__
