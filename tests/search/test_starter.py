from pathlib import Path

import pytest

from search import config_yaml, starter
from workers.data.summary import DataSummary

CPU = starter.Place("a CPU", is_gpu=False, workers=2)


def written(data, place=CPU, **wish):
    wish = {"name": "a", "source": "folder", "path": "p"} | wish
    return config_yaml.parse(starter.starter(starter.Wish(**wish), data, place), "x").values


def summary(image_size=64, class_names=("cat", "dog"), train=100):
    return DataSummary(image_size, 3, class_names, {"train": train, "val": 20, "test": 20}, "0")


@pytest.mark.parametrize("path", ["./plain", '/with "quotes" # and: colons', "C:\\back\\slashes", "ünï/🐈"])
def test_a_path_reads_back_as_it_was(path):
    assert written(summary(), path=path)["data"]["path"] == path


def test_settings_follow_the_images():
    small, large = written(summary(8)), written(summary(96, train=90_000))
    assert (small["space"]["preset"], large["space"]["preset"]) == ("tiny", "small")
    assert written(summary(224))["space"]["preset"] == "base"
    assert small["training"]["epochs"] > large["training"]["epochs"]
    assert small["training"]["batch_size"] < large["training"]["batch_size"]


def test_settings_follow_the_machine():
    gpu = starter.Place("a GPU\nname: stolen", is_gpu=True, workers=1)
    assert (
        written(summary(), gpu)["search"]["max_candidates"] > written(summary())["search"]["max_candidates"]
    )
    assert written(summary(), gpu)["name"] == "a"


def test_limits_and_a_deadline_stand_in_the_file_as_given():
    found = written(
        summary(), limits={"latency_ms": "1.5x resnet", "peak_memory_mb": 300.0}, deadline="07:00"
    )
    assert found["constraints"] == {"latency_ms": "1.5x resnet", "peak_memory_mb": 300}
    assert found["search"]["deadline"] == "07:00"


def test_a_class_name_cannot_leave_its_comment():
    hostile = ("x\nname: stolen", "y\u2028z", 200 * "w")
    assert written(summary(class_names=hostile))["name"] == "a"


@pytest.mark.parametrize(
    "folder, name", [("My Flowers!", "my-flowers"), ("...", "folder"), ("ü", "folder"), ("a" * 200, "a" * 60)]
)
def test_a_name_is_made_of_the_folders(folder, name):
    assert starter.default_name("folder", Path("/images") / folder) == name


def test_mnist_files_are_recognised(tmp_path):
    assert starter.guess_source(tmp_path) == "folder"
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "train-images-idx3-ubyte.gz").touch()
    assert starter.guess_source(tmp_path) == "idx"


@pytest.mark.parametrize(
    "path, dataset, source",
    [
        (None, None, "digits"),
        (Path("x.npz"), None, "npz"),
        (Path("nowhere"), None, "folder"),
        (None, "uoft-cs/cifar10", "huggingface"),
        (Path("data"), "CIFAR10", "torchvision"),
    ],
)
def test_the_source_follows_what_is_given(path, dataset, source):
    assert starter.guess_source(path, dataset) == source


def test_further_settings_of_the_data_stand_in_the_file():
    found = written(summary(), source="huggingface", path=None, more={"name": 'a/"b"', "download": True})
    assert found["data"] == {"source": "huggingface", "name": 'a/"b"', "download": True, "image_size": 64}
