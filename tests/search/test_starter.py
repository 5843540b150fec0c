from pathlib import Path

import pytest

from search import config_yaml, starter
from workers.data.summary import DataSummary


def summary(image_size=64, class_names=("cat", "dog"), train=100):
    return DataSummary(image_size, 3, class_names, {"train": train, "val": 20, "test": 20}, "0")


@pytest.mark.parametrize("path", ["./plain", '/with "quotes" # and: colons', "C:\\back\\slashes", "ünï/🐈"])
def test_a_path_reads_back_as_it_was(path):
    text = starter.starter("hunt", "folder", path, summary())
    assert config_yaml.parse(text, "x").values["data"]["path"] == path


def test_settings_follow_the_images():
    small = config_yaml.parse(starter.starter("a", "digits", None, summary(8)), "x").values
    large = config_yaml.parse(starter.starter("a", "folder", "p", summary(96, train=90_000)), "x").values
    assert (small["space"]["preset"], large["space"]["preset"]) == ("tiny", "small")
    assert small["training"]["epochs"] > large["training"]["epochs"]


def test_a_class_name_cannot_leave_its_comment():
    text = starter.starter(
        "a", "folder", "p", summary(class_names=("x\nname: stolen", "y\u2028z", 200 * "w"))
    )
    assert config_yaml.parse(text, "x").values["name"] == "a"


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
