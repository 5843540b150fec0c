"""An exported model prepares images as training did, and builds nothing but a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from workers.bundle import modeling
from workers.data import pixels as training_pixels
from workers.data.batches import DeviceData

MakeSettings = Callable[..., dict[str, Any]]
RANDOM = np.random.default_rng(0)


def data_of(image_size: int, input_size: int, channels: int) -> DeviceData:
    values = RANDOM.uniform(1, 200, (2, channels))
    return DeviceData(
        splits={},
        mean=torch.tensor(values[0], dtype=torch.float32)[:, None, None],
        scale=torch.tensor(1 / values[1], dtype=torch.float32)[:, None, None],
        class_names=("cat", "dog"),
        image_size=image_size,
        input_size=input_size,
        channels=channels,
        digest="0",
        device=torch.device("cpu"),
    )


@pytest.fixture
def folder_of(tmp_path: Path) -> Callable[[DeviceData], Path]:
    """A folder whose preprocessing.json is what an export of a network for such images holds."""
    from spaces.spec import ArchSpec
    from workers.bundle.export import _preprocessing

    def make(data: DeviceData) -> Path:
        settings = _preprocessing(ArchSpec("resnet18", {}, data.input_size), data)
        (tmp_path / "preprocessing.json").write_text(json.dumps(settings))
        return tmp_path

    return make


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sizes", [(8, 8), (8, 12), (16, 9)])
def test_pixels_become_the_same_bits_as_in_training(folder_of, channels: int, sizes: tuple[int, int]) -> None:
    for _ in range(20):
        data = data_of(*sizes, channels)
        pixels = torch.from_numpy(RANDOM.integers(0, 256, (3, sizes[0], sizes[0], channels), np.uint8))
        expected = data.normalise(pixels)
        assert torch.equal(modeling.preprocess(pixels, folder_of(data)), expected)
        assert torch.equal(modeling.preprocess(pixels.numpy(), folder_of(data)), expected)


def picture(path: Path, mode: str, size: tuple[int, int], **options: Any) -> Path:
    shape = (size[1], size[0], len(mode)) if len(mode) > 1 and mode != "I;16" else (size[1], size[0])
    if mode == "I;16":
        image = Image.fromarray(RANDOM.integers(0, 65536, shape).astype(np.uint16))
    elif mode == "P":
        image = Image.fromarray(RANDOM.integers(0, 256, (*shape, 3), np.uint8)).convert("P")
    else:
        image = Image.fromarray(RANDOM.integers(0, 256, shape, np.uint8), mode=None)
    image.save(path, **options)
    return path


@pytest.mark.parametrize(
    ("name", "mode", "options"),
    [
        ("a.png", "RGB", {}),
        ("a.jpg", "RGB", {}),
        ("a.png", "RGBA", {}),
        ("a.png", "L", {}),
        ("a.png", "P", {}),
        ("a.png", "P", {"transparency": 0}),
        ("a.png", "I;16", {}),
        (
            "turned.jpg",
            "RGB",
            {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"},
        ),
    ],
)
@pytest.mark.parametrize("size", [(16, 16), (70, 40), (9, 12)])
def test_a_file_is_decoded_as_in_training(
    folder_of, tmp_path: Path, name: str, mode: str, options: dict[str, Any], size: tuple[int, int]
) -> None:
    path, data = picture(tmp_path / name, mode, size, **options), data_of(16, 16, 3)
    expected = data.normalise(torch.from_numpy(training_pixels.decode(path, 16).copy())[None])
    assert torch.equal(modeling.preprocess(str(path), folder_of(data)), expected)


def test_a_pillow_image_is_read_as_its_file_and_left_as_it_is(folder_of, tmp_path: Path) -> None:
    path, data = picture(tmp_path / "a.png", "RGB", (70, 40)), data_of(16, 16, 3)
    with Image.open(path) as image:
        found = modeling.preprocess(image, folder_of(data))
        assert image.size == (70, 40)
    assert torch.equal(found, modeling.preprocess(path, folder_of(data)))


def test_pixels_of_another_size_are_cropped_and_scaled_as_in_training(folder_of) -> None:
    data = data_of(8, 8, 1)
    pixels = RANDOM.integers(0, 256, (2, 20, 13, 1), np.uint8)
    expected = data.normalise(torch.from_numpy(training_pixels.fit(pixels, 8, lambda: None)))
    assert torch.equal(modeling.preprocess(pixels, folder_of(data)), expected)


def test_one_image_may_come_without_its_batch_and_a_grey_one_without_its_channel(folder_of) -> None:
    data = data_of(8, 8, 1)
    pixels = RANDOM.integers(0, 256, (1, 8, 8, 1), np.uint8)
    expected = modeling.preprocess(pixels, folder_of(data))
    assert torch.equal(modeling.preprocess(pixels[0], folder_of(data)), expected)
    assert torch.equal(modeling.preprocess(pixels[0, :, :, 0], folder_of(data)), expected)


@pytest.mark.parametrize(
    ("image", "error", "said"),
    [
        (np.zeros((8, 8, 3), np.float32), TypeError, "uint8, from 0 to 255, not float32"),
        (np.zeros((8, 8), np.uint8), ValueError, r"\[height, width, 3\], not \[8, 8\]"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.uint8), ValueError, r"not \[2, 3, 8, 8\]"),
    ],
)
def test_what_are_no_such_pixels_is_refused(folder_of, image: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        modeling.preprocess(image, folder_of(data_of(8, 8, 3)))


@pytest.mark.parametrize(
    "spec",
    [
        {"model": "resnet18", "args": {"pretrained": True}},
        {"model": "resnet18", "args": {"checkpoint_path": "evil.pth"}},
        {"model": "resnet18", "args": {"pretrained_cfg": {"file": "evil.pth"}}},
        {"model": "resnet18", "args": {"pretrained_cfg_overlay": {"file": "evil.pth"}}},
        {"model": "hf-hub:someone/model", "args": {}},
        {"model": "local-dir:/tmp", "args": {}},
        {"model": "paretovit_unknown", "args": {}},
    ],
)
def test_a_spec_that_asks_for_more_than_a_network_is_refused(tmp_path: Path, spec: dict[str, Any]) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(spec | {"image_size": 32}))
    with pytest.raises(ValueError, match=r"^spec\.json: "):
        modeling.build(tmp_path)


def test_the_program_names_the_likeliest_classes(
    exported: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    from safetensors.torch import load_file

    folder = exported("vit")
    sample: dict[str, Tensor] = load_file(folder / "sample.safetensors")
    Image.fromarray(sample["pixels"][0, :, :, 0].numpy()).save(tmp_path / "digit.png")
    for name in ("load", "preprocess", "class_names"):
        function = getattr(modeling, name)
        monkeypatch.setattr(modeling, name, lambda *given, of=function: of(*given, folder))
    assert modeling.main([str(tmp_path / "digit.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    shares = sample["scores"][0].softmax(0)
    assert lines[0] == str(tmp_path / "digit.png")
    assert lines[1] == f"  {shares.max():.3f}  {int(shares.argmax())}"
    assert len(lines) == 6
    assert modeling.main([]) == modeling.main(["--help"]) == 2
