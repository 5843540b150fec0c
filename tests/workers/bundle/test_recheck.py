"""Whatever of a folder cannot be used is named. Run in this process here; `verify` runs it in one of its own."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from workers.bundle import recheck

Recheck = Callable[[Path], dict[str, Any]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recheck:
    """What the check answers for a folder."""

    def run(folder: Path) -> dict[str, Any]:
        text = io.BytesIO((folder / "modeling.py").read_bytes())
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=text))
        recheck.main(str(folder))
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture(scope="module")
def model(exported: Callable[..., Path]) -> Path:
    return exported("vit", onnx=True)


def test_a_whole_folder_is_answered_for(run: Recheck, model: Path) -> None:
    found = run(model)
    assert found["num_images"] == 32
    assert found["differences"].keys() == {"modeling.py", "model.onnx"}
    assert max(found["differences"].values()) < 1e-5


def settings(**changes: Any) -> Callable[[Path], None]:
    """Changes preprocessing.json; None takes a key away."""

    def change(path: Path) -> None:
        content = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))

    return change


def tensors(**changes: Any) -> Callable[[Path], None]:
    """Changes sample.safetensors; None takes a tensor away."""

    def change(path: Path) -> None:
        content = load_file(path) | changes
        save_file({name: value for name, value in content.items() if value is not None}, path)

    return change


def arguments(**changes: Any) -> Callable[[Path], None]:
    """Changes what spec.json gives to timm."""

    def change(path: Path) -> None:
        spec = json.loads(path.read_text())
        path.write_text(json.dumps(spec | {"args": spec["args"] | changes}))

    return change


def text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content) and None


BREAKS = [
    ("preprocessing.json", settings(pixels_size=None), "KeyError: 'pixels_size'"),
    ("preprocessing.json", settings(pixels_size=float("inf")), "Error: "),
    ("preprocessing.json", settings(image_size="8"), "Error: "),
    ("preprocessing.json", settings(channels=3), "ValueError: pixels are [height, width, 3]"),
    ("preprocessing.json", settings(mean=["x"]), "Error: "),
    ("preprocessing.json", settings(class_names=None), "KeyError: 'class_names'"),
    ("preprocessing.json", settings(class_names=[1] * 10), "class_names is no list of names"),
    ("preprocessing.json", settings(class_names=["cat"]), "1 class_names, but 10 scores an image"),
    ("preprocessing.json", text("[]"), "TypeError: "),
    ("preprocessing.json", text("[" * 200_000), "RecursionError: "),
    ("spec.json with preprocessing.json", settings(image_size=16), "AssertionError: "),
    ("spec.json", arguments(img_size="eight"), "Error: "),
    ("spec.json", arguments(no_such=1), "TypeError: "),
    ("model.safetensors", text("\xff" * 1000), "header too large"),
    ("model.safetensors", text(""), "SafetensorError: "),
    ("model.safetensors", tensors(more=torch.ones(1)), "Unexpected key(s) in state_dict"),
    ("sample.safetensors", text("\xff" * 1000), "header too large"),
    ("sample.safetensors", tensors(scores=None), "KeyError: 'scores'"),
    ("sample.safetensors", tensors(pixels=torch.ones(32, 8, 8, 1)), "pixels are torch.float32 [32, 8, 8, 1]"),
    ("sample.safetensors", tensors(scores=torch.ones(3, 10)), "32 images, but scores of 3"),
    ("model.onnx", text("nothing"), "model.onnx"),
]


@pytest.mark.parametrize(("names", "change", "told"), BREAKS, ids=[f"{b[0]}-{b[2]}" for b in BREAKS])
def test_what_cannot_be_used_is_named(
    run: Recheck,
    model: Path,
    copy: Callable[[Path], Path],
    names: str,
    change: Callable[[Path], None],
    told: str,
) -> None:
    folder = copy(model)
    change(folder / names.split()[-1])
    with pytest.raises(SystemExit) as found:
        run(folder)
    said = str(found.value.code)
    assert said.startswith(f"{names}: ")
    assert told in said
    assert len(said.splitlines()) == 1
