from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from workers.data import dataset
from workers.data.listing import DataError
from workers.data.sources import huggingface
from workers.data.summary import summarise
from workers.settings import DataSettings

PICTURES = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), np.uint8)


def test_without_the_package_the_extra_is_named(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    huggingface._opened.cache_clear()
    with pytest.raises(
        DataError, match=r"huggingface needs the package datasets; pip install 'paretovit\[data\]'"
    ):
        summarise(DataSettings("huggingface", str(tmp_path)))


@pytest.fixture
def made(tmp_path: Path, needs):
    """Writes a data set of splits {name: (first, last picture)} as `save_to_disk` does."""
    try:
        import datasets
    except ImportError:
        needs("the package datasets", False)
    huggingface._opened.cache_clear()

    def part(first: int, last: int, names: list[str] | None) -> Any:
        numbers = [number % 2 for number in range(first, last)]
        feature = datasets.Value("string") if names is None else datasets.ClassLabel(names=names)
        labels = [("cat", "dog")[number] for number in numbers] if names is None else numbers
        rows = {"image": [Image.fromarray(picture) for picture in PICTURES[first:last]], "label": labels}
        return datasets.Dataset.from_dict(
            rows, datasets.Features({"image": datasets.Image(), "label": feature})
        )

    def make(splits: dict[str, tuple], **values) -> DataSettings:
        found = datasets.DatasetDict({name: part(*place) for name, place in splits.items()})
        found.save_to_disk(str(tmp_path / "saved"))
        return DataSettings("huggingface", str(tmp_path / "saved"), image_size=8, **values)

    return make


NAMES = ["cat", "dog"]


def test_splits_are_taken_by_their_names_and_pixels_come_as_they_are(made) -> None:
    data = dataset.load(
        made({"train": (0, 20, NAMES), "validation": (20, 28, NAMES), "test": (28, 40, NAMES)})
    )
    assert data.class_names == ("cat", "dog")
    for split, part in (("train", slice(0, 20)), ("val", slice(20, 28)), ("test", slice(28, 40))):
        assert np.array_equal(data.splits[split].pixels, PICTURES[part])


def test_a_single_split_is_split(made) -> None:
    assert summarise(made({"train": (0, 40, NAMES)})).num_images == {"train": 28, "val": 6, "test": 6}


def test_classes_are_matched_by_name_where_splits_number_them_otherwise(made) -> None:
    data = dataset.load(made({"train": (0, 20, NAMES), "test": (20, 30, NAMES[::-1])}))
    assert data.splits["test"].labels.tolist() == [1, 0] * 5


def test_classes_that_training_lacks_are_named(made) -> None:
    with pytest.raises(DataError, match=r"split test of .* classes that the training images lack: 'bird'"):
        summarise(made({"train": (0, 20, NAMES), "test": (20, 30, ["cat", "bird"])}))


def test_classes_may_be_text_in_a_column_that_is_named(made) -> None:
    found = made({"train": (0, 40, None)}, label_column="label", image_column="image")
    assert summarise(found).class_names == ("cat", "dog")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"label_column": "species"},
            r"data\.label_column: 'species' is no column .*; there are: image, label",
        ),
        ({"image_column": "label"}, r"data\.image_column: 'label' .* holds no images"),
    ],
)
def test_a_column_that_does_not_do_is_named(made, columns, message: str) -> None:
    with pytest.raises(DataError, match=message):
        summarise(made({"train": (0, 40, NAMES)}, **columns))


def test_the_digest_is_the_same_for_the_same_images_written_again(made) -> None:
    first = summarise(made({"train": (0, 40, NAMES)})).digest
    huggingface._opened.cache_clear()
    assert summarise(made({"train": (0, 40, NAMES)})).digest == first


def test_a_name_that_is_not_on_this_machine_is_named_with_the_setting_that_fetches_it(made) -> None:
    with pytest.raises(
        DataError, match=r"data\.name: nobody/nothing: cannot be loaded .*data\.download: true"
    ):
        summarise(DataSettings("huggingface", name="nobody/nothing"))


def test_a_folder_that_is_no_saved_data_set_is_named(made, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.path: .* is no folder that save_to_disk wrote"):
        summarise(DataSettings("huggingface", str(tmp_path)))
