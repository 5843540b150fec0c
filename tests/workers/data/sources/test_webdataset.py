from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from workers.data import dataset
from workers.data.listing import DataError
from workers.data.summary import summarise
from workers.settings import DataSettings

PICTURES = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), np.uint8)


def png(picture: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    return file.getvalue()


def shard(path: Path, members: dict[str, bytes], mode: str = "w") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def samples(
    first: int, last: int, class_of=lambda number: str(number % 2), end: str = "cls"
) -> dict[str, bytes]:
    found = {}
    for number in range(first, last):
        found[f"{number:04}.png"] = png(PICTURES[number])
        found[f"{number:04}.{end}"] = class_of(number).encode()
    return found


def settings(root: Path, **values) -> DataSettings:
    return DataSettings("webdataset", str(root), image_size=8, **values)


def test_shards_without_a_split_are_one_pool(tmp_path: Path) -> None:
    shard(tmp_path / "a-0000.tar", samples(0, 20))
    shard(tmp_path / "a-0001.tar", samples(20, 40))
    data = dataset.load(settings(tmp_path))
    assert data.class_names == ("0", "1")
    everything = np.concatenate([images.pixels for images in data.splits.values()])
    assert {picture.tobytes() for picture in everything} == {picture.tobytes() for picture in PICTURES}


@pytest.mark.parametrize(
    "names", [("train-0.tar", "val_0.tar", "test.tar"), ("train/0.tar", "validation/0.tar", "test/0.tar")]
)
def test_splits_are_taken_by_the_names_of_shards_or_folders(names, tmp_path: Path) -> None:
    for name, (first, last) in zip(names, ((0, 20), (20, 28), (28, 40)), strict=True):
        shard(tmp_path / name, samples(first, last))
    data = dataset.load(settings(tmp_path))
    for split, part in (("train", slice(0, 20)), ("val", slice(20, 28)), ("test", slice(28, 40))):
        assert np.array_equal(data.splits[split].pixels, PICTURES[part])
        assert data.splits[split].labels.tolist() == [number % 2 for number in range(part.start, part.stop)]


def test_classes_may_be_names_json_or_numbers_with_names(tmp_path: Path) -> None:
    shard(tmp_path / "names" / "a.tar", samples(0, 20, lambda number: ("dog", "cat")[number % 2], "txt"))
    shard(
        tmp_path / "json" / "a.tar", samples(0, 20, lambda number: json.dumps({"label": number % 2}), "json")
    )
    shard(tmp_path / "numbers" / "a.tar", samples(0, 20))
    (tmp_path / "numbers" / "classes.txt").write_text("dog\ncat\n")
    assert summarise(settings(tmp_path / "names")).class_names == ("cat", "dog")
    assert summarise(settings(tmp_path / "json")).class_names == ("0", "1")
    assert summarise(settings(tmp_path / "numbers")).class_names == ("dog", "cat")


def test_a_bad_picture_is_named_with_its_shard_and_may_be_left_out(tmp_path: Path) -> None:
    members = samples(0, 20)
    members["0003.png"] = members["0003.png"][:-60]
    shard(tmp_path / "a.tar", members)
    with pytest.raises(DataError, match=r"a\.tar:0003\.png: .*data\.max_bad: 1"):
        dataset.load(settings(tmp_path))
    assert sum(summarise(settings(tmp_path, max_bad=1)).num_images.values()) == 19


def test_what_lies_in_a_tar_file_beside_images_and_classes_is_not_opened(tmp_path: Path) -> None:
    shard(
        tmp_path / "a.tar",
        samples(0, 20) | {"0000.pyd": b"cos\nsystem\n", "../../etc.png": b"", "../../etc.cls": b"0"},
    )
    with pytest.raises(DataError, match=r"\.\./\.\./etc\.png: the file is empty"):
        dataset.load(settings(tmp_path))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"0.png": png(PICTURES[0])}, r"a\.tar:0: has no class; each image needs a \.cls"),
        (samples(0, 20, lambda _: "7"), "one class only"),
        (samples(0, 20) | {"x.png": b"x", "x.json": b"{"}, r"a\.tar: cannot be read"),
    ],
)
def test_shards_that_cannot_be_used_are_named(members, message: str, tmp_path: Path) -> None:
    shard(tmp_path / "a.tar", members)
    with pytest.raises(DataError, match=message):
        summarise(settings(tmp_path))


def test_classes_that_training_lacks_are_named(tmp_path: Path) -> None:
    shard(tmp_path / "train.tar", samples(0, 20))
    shard(tmp_path / "val.tar", samples(20, 24, lambda number: f"bird{number}"))
    with pytest.raises(DataError, match=r"split val of .* lack: 'bird20', 'bird21', 'bird22', 'bird23'"):
        summarise(settings(tmp_path))


def test_a_packed_shard_is_named_with_the_remedy(tmp_path: Path) -> None:
    shard(tmp_path / "a.tar.gz", samples(0, 4), "w:gz")
    with pytest.raises(DataError, match=r"holds no \.tar files; unpack a\.tar\.gz to a plain \.tar"):
        summarise(settings(tmp_path))


def test_a_file_that_is_no_tar_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no tar file" * 100)
    with pytest.raises(DataError, match=r"a\.tar: cannot be read"):
        summarise(settings(tmp_path))
