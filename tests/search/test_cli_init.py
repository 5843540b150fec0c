"""`paretovit init`: what it writes passes `validate`."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from search import config
from search.cli.main import main
from search.validate import check


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def make_images(folder, classes, size, count=12):
    random = np.random.default_rng(0)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(0, 255, (size, size, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


def test_on_digits_it_writes_a_search_that_passes(tmp_path, capsys):
    assert main(["init", "--source", "digits"]) == 0
    assert "paretovit run search.yaml" in capsys.readouterr().out
    checked = check(config.load("search.yaml"), time.time())
    assert checked.plan.config.name == "digits"
    assert checked.plan.data.image_size == 8
    assert "# " in (tmp_path / "search.yaml").read_text()


def test_digits_take_no_folder(tmp_path, capsys):
    make_images(tmp_path / "images", ("cat", "dog"), 16)
    assert main(["init", "--source", "digits", "--path", "images"]) == 2
    assert "data.path: source digits brings its own images; remove path" in capsys.readouterr().err
    assert not (tmp_path / "search.yaml").exists()


@pytest.mark.parametrize("classes", [("cat", "dog"), ("a: b", "# c\nd"), ("Ünï", "emoji 🐈")])
def test_a_folder_of_images_is_looked_at_whatever_its_classes_are_called(tmp_path, classes):
    make_images(tmp_path / "My Flowers!", classes, 64)
    assert main(["init", "--path", "My Flowers!", "--to", "flowers.yaml"]) == 0
    checked = check(config.load("flowers.yaml"), time.time())
    assert checked.plan.config.name == "my-flowers"
    assert checked.plan.config.data.path == str(tmp_path / "My Flowers!")
    assert checked.plan.config.space.preset == "small"
    assert len(checked.plan.data.class_names) == 2


def test_flags_beat_what_would_be_guessed(tmp_path):
    make_images(tmp_path / "images", ("cat", "dog"), 16)
    (tmp_path / "configs").mkdir()
    arguments = ["--source", "folder", "--path", "images", "--name", "hunt", "--to", "configs/hunt.yaml"]
    assert main(["init", *arguments]) == 0
    loaded = config.load("configs/hunt.yaml")
    assert loaded.name == "hunt"
    assert loaded.data.path == str(tmp_path / "images")


@pytest.mark.parametrize("side, image_size", [(16, 32), (70, 64), (300, 64)])
def test_the_image_size_follows_the_pictures(tmp_path, side, image_size, capsys):
    make_images(tmp_path / "images", ("cat", "dog"), side)
    assert main(["init", "--path", "images"]) == 0
    assert config.load("search.yaml").data.image_size == image_size
    assert (
        f"their short sides are {side} px by the median: brought to {image_size} px"
        in capsys.readouterr().out
    )


def test_limits_image_size_and_deadline_may_be_given(tmp_path):
    limits = ["--under", "latency_ms=1.5x resnet", "--under", "peak_memory_mb=300"]
    assert main(["init", "--source", "digits", *limits, "--image-size", "16", "--deadline", "8h"]) == 0
    loaded = config.load("search.yaml")
    assert loaded.constraints == {"latency_ms": "1.5x resnet", "peak_memory_mb": 300}
    assert (loaded.data.image_size, loaded.search.deadline) == (16, "8h")


class Typing(io.StringIO):
    """A user at a terminal."""

    def isatty(self):
        return True


def test_on_a_terminal_it_asks_and_enter_takes_the_default(tmp_path, monkeypatch):
    make_images(tmp_path / "images", ("cat", "dog"), 64)
    monkeypatch.setattr("sys.stdin", Typing("images\n5\n8h\n"))
    assert main(["init"]) == 0
    loaded = config.load("search.yaml")
    assert loaded.data.path == str(tmp_path / "images")
    assert loaded.constraints == {"latency_ms": 5}
    assert loaded.search.deadline == "8h"
    monkeypatch.setattr("sys.stdin", Typing("\n\n\n"))
    assert main(["init", "--to", "other.yaml"]) == 0
    other = config.load("other.yaml")
    assert (other.data.source, other.constraints, other.search.deadline) == ("digits", {}, None)


def test_a_bad_answer_is_asked_again(tmp_path, monkeypatch, capsys):
    make_images(tmp_path / "images", ("cat", "dog"), 16)
    monkeypatch.setattr("sys.stdin", Typing("none\nimages\nfast\n-2\n5\nsoon\n8h\n"))
    assert main(["init"]) == 0
    loaded = config.load("search.yaml")
    assert loaded.data.path == str(tmp_path / "images")
    assert (loaded.constraints, loaded.search.deadline) == ({"latency_ms": 5}, "8h")
    err = capsys.readouterr().err
    assert all(words in err for words in ("none is not a folder", "'fast'", "'-2.0'", "'soon'"))


def test_who_leaves_while_asked_again_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", Typing("none\n"))
    assert main(["init"]) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["--name", "hunt"], ["--deadline", "8h"]])
def test_without_a_terminal_to_ask_on_the_images_have_to_be_named(tmp_path, arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["init", *arguments]) == 2
    err = capsys.readouterr().err
    assert "--path" in err
    assert "--source" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path, written", [("../pics", "../pics"), ("pics", "./pics"), (".", ".")])
def test_the_file_names_the_folder_as_short_as_it_can(tmp_path, path, written, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    make_images((tmp_path / "here" / path), ("cat", "dog"), 16)
    assert main(["init", "--path", path, "--to", "search.yaml"]) == 0
    assert f"path: {json.dumps(written)}\n" in (tmp_path / "here" / "search.yaml").read_text()
    assert Path(str(config.load("search.yaml").data.path)).samefile(tmp_path / "here" / path)


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "search.yaml").write_text("mine\n")
    assert main(["init"]) == 2
    assert "not overwritten" in capsys.readouterr().err
    assert (tmp_path / "search.yaml").read_text() == "mine\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--path", "none"], "none is not a folder"),
        (["--source", "folder"], "data.path"),
        (["--name", "a/b"], "--name: 'a/b'"),
        (["--source", "digits", "--under", "accuracy=0.9"], "accuracy should be high"),
        (["--source", "digits", "--under", "throughput=9"], "write it under constraints:"),
        (["--source", "digits", "--under", "latency_ms=-3"], "--under: latency_ms: '-3.0' is no bound"),
        (["--source", "digits", "--under", "latency_ms=2x foo"], "--under: latency_ms: unknown baseline"),
        (["--source", "digits", "--deadline", "soon"], "--deadline: 'soon' is no deadline"),
        (["--to", "none/search.yaml"], "none is no folder"),
        (["--under", "latency_ms"], "needs COST=BOUND"),
        (["--under", "speed=3"], "--under: unknown quantity 'speed'"),
        (["--deadline", "tomorrow"], "deadline"),
        (["--source", "digits", "--image-size", "2"], "image_size: 2"),
    ],
)
def test_what_cannot_be_written_about_is_an_error_and_writes_nothing(tmp_path, arguments, words, capsys):
    assert main(["init", *arguments]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert len(err.splitlines()) <= 2
    assert list(tmp_path.iterdir()) == []


def write_npz(tmp_path):
    np.savez(
        tmp_path / "blood.npz",
        images=np.arange(40 * 64, dtype=np.uint8).reshape(40, 8, 8),
        labels=np.arange(40) % 4,
    )
    return ["--path", "blood.npz"], {"source": "npz", "path": str(tmp_path / "blood.npz")}, "blood"


def write_tars(tmp_path):
    (tmp_path / "shards").mkdir()
    with tarfile.open(tmp_path / "shards" / "0.tar", "w") as tar:
        for number in range(40):
            picture = io.BytesIO()
            Image.fromarray(np.full((16, 16, 3), 3 * number, np.uint8)).save(picture, "PNG")
            for suffix, data in (("png", picture.getvalue()), ("cls", str(number % 2).encode())):
                member = tarfile.TarInfo(f"{number:03}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return ["--path", "shards"], {"source": "webdataset", "path": str(tmp_path / "shards")}, "shards"


def write_published(tmp_path):
    """As torchvision's own download lays FashionMNIST out."""
    folder = tmp_path / "data" / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    for split, count in (("train", 40), ("t10k", 20)):
        pixels, labels = (
            np.arange(count * 784, dtype=np.uint32).astype(np.uint8),
            np.arange(count, dtype=np.uint8) % 10,
        )
        header = struct.pack(">4I", 0x803, count, 28, 28)
        (folder / f"{split}-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2I", 0x801, count) + labels.tobytes()
        )
    named = {"source": "torchvision", "name": "FashionMNIST", "path": str(tmp_path / "data")}
    return ["--path", "data", "--dataset", "FashionMNIST"], named, "fashionmnist"


def write_saved(tmp_path):
    datasets = pytest.importorskip("datasets")
    images = [Image.fromarray(np.full((8, 8), 6 * number, np.uint8)) for number in range(40)]
    columns = {"img": images, "preview": images, "label": [number % 2 for number in range(40)]}
    kinds = {
        "img": datasets.Image(),
        "preview": datasets.Image(),
        "label": datasets.ClassLabel(names=["a", "b"]),
    }
    datasets.Dataset.from_dict(columns, features=datasets.Features(kinds)).save_to_disk(
        str(tmp_path / "saved")
    )
    named = {"source": "huggingface", "path": str(tmp_path / "saved"), "image_column": "img"}
    return ["--path", "saved", "--image-column", "img"], named, "saved"


@pytest.mark.parametrize("write", [write_npz, write_tars, write_published, write_saved])
def test_every_other_source_is_recognised_by_what_lies_there(tmp_path, write):
    arguments, data, name = write(tmp_path)
    assert main(["init", *arguments]) == 0
    found = check(config.load("search.yaml"), time.time()).plan.config
    assert found.name == name
    assert {key: getattr(found.data, key) for key in data} == data


def test_a_data_set_without_a_folder_is_looked_for_at_hugging_face(monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("datasets")
    assert main(["init", "--dataset", "nobody/nothing"]) == 2
    assert "nobody/nothing" in capsys.readouterr().err
