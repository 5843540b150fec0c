"""An image classifier that paretovit trained. This file needs torch and timm, and the files that lie beside it.

    python modeling.py image.png                    # the likeliest classes

    from modeling import load, preprocess
    network = load()                                # torch.nn.Module in evaluation mode, on the CPU
    scores = network(preprocess("image.png"))       # float32 [1, classes]; softmax makes them probabilities

Architecture, weights and preprocessing are read from spec.json, model.safetensors and preprocessing.json.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from PIL import Image, ImageOps
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).parent
NUM_SHOWN = 5
LOADS_WEIGHTS = {"pretrained", "pretrained_cfg", "pretrained_cfg_overlay", "checkpoint_path", "cache_dir"}

ENTRY_POINTS: tuple[Callable[..., nn.Module], ...] = ()
default_cfgs: dict[str, dict[str, Any]] = {}


def load(folder: str | os.PathLike[str] = HERE) -> nn.Module:
    """The trained network in evaluation mode, on the CPU.

    It takes float32 images [n, channels, image_size, image_size], as `preprocess` makes them, and gives scores
    [n, classes].
    """
    network = build(folder)
    network.load_state_dict(load_file(Path(folder, "model.safetensors")))
    return network.eval()


def build(folder: str | os.PathLike[str] = HERE) -> nn.Module:
    """The network with random weights. Raises ValueError for a spec.json that asks for more than a network."""
    spec = _read(folder, "spec.json")
    name, args = spec["model"], spec["args"]
    loads = sorted(LOADS_WEIGHTS & args.keys())
    if loads:
        raise ValueError(
            f"spec.json: argument {loads[0]!r} is not allowed; weights come from model.safetensors"
        )
    for entry_point in ENTRY_POINTS:
        if entry_point.__name__ == name:
            return entry_point(pretrained_cfg=default_cfgs[name], **args)
    if not timm.is_model(name):
        raise ValueError(f"spec.json: model {name!r} is not an entry point of timm {timm.__version__}")
    return timm.create_model(name, **args)


def preprocess(image: Any, folder: str | os.PathLike[str] = HERE) -> Tensor:
    """float32 [n, channels, image_size, image_size], as the network saw its images in training, without augmentation.

    image: a path, a Pillow image, or uint8 pixels in an array or tensor: [height, width] where there is one channel,
    [height, width, channels], or [n, height, width, channels]. Raises TypeError or ValueError for anything else.
    """
    settings = _read(folder, "preprocessing.json")
    pixels = _pixels(image, settings["pixels_size"], settings["channels"])
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    images = images.to(torch.float32, memory_format=torch.contiguous_format)
    mean = torch.tensor(settings["mean"], dtype=torch.float32)[:, None, None]
    scale = 1 / torch.tensor(settings["std"], dtype=torch.float64)[:, None, None]
    images = images.sub_(mean).mul_(scale.to(torch.float32))
    side = settings["image_size"]
    if images.shape[2:] == (side, side):
        return images
    return functional.interpolate(images, size=(side, side), mode="bicubic", antialias=True)


def class_names(folder: str | os.PathLike[str] = HERE) -> list[str]:
    """The classes in the order of the scores."""
    return _read(folder, "preprocessing.json")["class_names"]


def _pixels(image: Any, side: int, channels: int) -> np.ndarray:
    """uint8 [n, side, side, channels]."""
    if isinstance(image, str | os.PathLike):
        with Image.open(image) as opened:
            opened.draft("RGB" if channels == 3 else "L", (2 * side, 2 * side))
            return _square(opened, side, channels)[None]
    if isinstance(image, Image.Image):
        return _square(image, side, channels)[None]
    pixels = image.numpy(force=True) if isinstance(image, Tensor) else np.asarray(image)
    if pixels.dtype != np.uint8:
        raise TypeError(f"pixels are uint8, from 0 to 255, not {pixels.dtype}")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim == 3:
        pixels = pixels[None]
    if pixels.ndim != 4 or pixels.shape[3] != channels:
        raise ValueError(f"pixels are [height, width, {channels}], not {list(np.shape(image))}")
    pictures = [Image.fromarray(one.squeeze(2) if channels == 1 else one) for one in pixels]
    return np.stack([_square(picture, side, channels) for picture in pictures])


def _square(image: Image.Image, side: int, channels: int) -> np.ndarray:
    """Turned as its EXIF says, the largest square in the middle, bicubic."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # 16-bit grey, which Pillow would clip instead of scaling
        image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    if image.mode == "P":  # palettes with transparency warn when they lose it in one step
        image = image.convert("RGBA")
    image = image.convert("RGB" if channels == 3 else "L")
    return np.array(ImageOps.fit(image, (side, side), Image.Resampling.BICUBIC)).reshape(side, side, channels)


def _read(folder: str | os.PathLike[str], name: str) -> dict[str, Any]:
    return json.loads(Path(folder, name).read_text(encoding="utf-8"))


def main(paths: Sequence[str]) -> int:
    if not paths or paths[0].startswith("-"):
        print("usage: python modeling.py IMAGE...", file=sys.stderr)
        return 2
    network, names = load(), class_names()
    for path in paths:
        with torch.inference_mode():
            found = network(preprocess(path)).softmax(1)[0].topk(min(NUM_SHOWN, len(names)))
        print(path)
        for share, number in zip(found.values.tolist(), found.indices.tolist(), strict=True):
            print(f"  {share:.3f}  {names[number] if names[number].isprintable() else repr(names[number])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
