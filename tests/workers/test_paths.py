"""Paths as users write them: `~`, and what no file can be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from search import config
from search.cli.main import main
from search.errors import UsageError
from search.store.location import locate
from workers import paths
from workers.data import cache
from workers.data.listing import DataError

HEAD = "name: hunt\ndata: {source: digits}\n"
KEYS = {
    "data.path": "name: hunt\ndata: {source: folder, path: '%s'}\n",
    "training.weights_dir": HEAD + "training: {weights_dir: '%s'}\n",
    "training.distillation.teacher.checkpoint": HEAD
    + "training: {distillation: {teacher: {checkpoint: '%s'}}}\n",
    "artifacts": HEAD + "artifacts: '%s'\n",
}
NO_PATHS = {
    "~nobody-of-that-name/x": "the home folder of a user 'nobody-of-that-name' is not known here",
    "x" * 256: "is longer than a path can be (",
    "a/" * 2500: "is longer than a path can be (",
}


def test_a_home_folder_is_put_for_its_sign(monkeypatch):
    monkeypatch.setenv("HOME", "/somebody")
    assert paths.expanded("~/images") == Path("/somebody/images")
    assert paths.expanded("images/~") == Path("images/~")


def test_a_name_of_255_bytes_is_a_path():
    assert paths.expanded("x" * 255) == Path("x" * 255)
    assert paths.fault("é" * 128) is not None


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_characters_that_no_file_name_holds_are_refused(text):
    with pytest.raises(ValueError, match="no file name can"):
        paths.expanded(text)


@pytest.mark.parametrize("path", NO_PATHS)
@pytest.mark.parametrize("key", KEYS)
def test_every_path_of_a_config_that_can_be_none_is_refused_at_its_line(key, path, tmp_path):
    file = tmp_path / "search.yaml"
    file.write_text(KEYS[key] % path)
    with pytest.raises(UsageError) as caught:
        config.load(file)
    text = str(caught.value)
    line = 2 if key == "data.path" else 3
    assert text.startswith(f"{file}:{line}: {key}: ")
    assert NO_PATHS[path] in text
    assert "\n" not in text
    assert len(text) < 400


def test_all_paths_of_a_config_are_tried_above():
    assert {".".join(path) for path in config._PATHS} == set(KEYS)


@pytest.mark.parametrize("path", NO_PATHS)
def test_such_a_path_on_the_command_line_is_an_error_of_usage(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "search.yaml").write_text(HEAD)
    for arguments, named in (
        (["validate", "search.yaml", "--set", f"artifacts={path}"], "--set artifacts: "),
        (["status", "--db", path], "--db "),
        (["init", "--path", path, "--to", "new.yaml"], "--path "),
    ):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"paretovit: {named}")
        assert NO_PATHS[path] in said
        assert said.count("\n") == 1
        assert len(said) < 300


def test_a_config_with_an_endless_name_is_not_repeated_in_full(capsys):
    assert main(["validate", "x" * 5000]) == 2
    assert len(capsys.readouterr().err) < 200


def test_a_cache_below_no_home_is_refused(monkeypatch):
    monkeypatch.setenv("PARETOVIT_CACHE", "~nobody-of-that-name/x")
    with pytest.raises(DataError, match=r"PARETOVIT_CACHE=.* is not known here"):
        cache.folder()


def test_the_database_is_refused_as_usage():
    with pytest.raises(UsageError, match="--db '~nobody-of-that-name/x': the home folder"):
        locate("~nobody-of-that-name/x")
