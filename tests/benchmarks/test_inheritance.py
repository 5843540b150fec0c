"""What beginning from parts of a larger pretrained network adds: a ViT is trained on five classes of Fashion-MNIST, and
smaller ones learn the other five from slices of it, and from fresh weights, for as many epochs.

pytest -s -m benchmark tests/benchmarks/test_inheritance.py

docs/finetuning.md has what was seen.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from spaces.spec import ArchSpec
from workers.job import Decision, Job, Kind
from workers.settings import DataSettings, JobSettings, RecipeSettings
from workers.train import TrainResult, train

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3 * 3600)]
WriteClasses = Callable[[Path, Sequence[int], int], DataSettings]
TROUSERS_DRESSES_SANDALS_SNEAKERS_BOOTS = (1, 3, 5, 7, 9)
SHIRTS_PULLOVERS_COATS_BAGS = (0, 2, 4, 6, 8)
T_OF_TWO_DEGREES = 4.303
"""Student's t at 97.5% with two degrees of freedom."""
WAYS: dict[str, tuple[bool, dict[str, Any]]] = {
    "fresh": (False, {}),
    "fresh, rate 0.01": (False, {"learning_rate": 1e-2}),
    "inherited": (True, {}),
    "inherited, rate 0.01": (True, {"head_rate": 1e-2}),
    "inherited, rates of finetune": (True, {"backbone_rate": 0.2, "layer_decay": 0.75}),
    "inherited, frozen 1 epoch": (True, {"frozen_epochs": 1.0}),
}
"""Name -> whether it inherits, and the settings beside the defaults."""


def vit(width: int, depth: int, heads: int, mlp_ratio: float) -> ArchSpec:
    sizes = {"embed_dim": width, "depth": depth, "num_heads": heads, "mlp_ratio": mlp_ratio}
    args = {"img_size": 28, "patch_size": 7, "class_token": False, "global_pool": "avg", **sizes}
    return ArchSpec("vit_tiny_patch16_224", {**args, "in_chans": 1, "num_classes": 5}, 28)


SOURCE = vit(96, 6, 6, 4.0)
SHAPES = {"half as deep": vit(96, 3, 6, 4.0), "half as wide": vit(48, 6, 3, 4.0), "both": vit(48, 3, 3, 2.0)}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(
    spec: ArchSpec, data: DataSettings, recipe: RecipeSettings, artifacts: Path, inherit: str | None = None
) -> TrainResult:
    settings = JobSettings(data, recipe)
    job = Job(1, 1, 1, Kind.TRAIN, "x", 1, spec, settings, str(artifacts), 1, recipe.epochs, inherit=inherit)
    return train(job, torch.device("cpu"), lambda _: Decision.CONTINUE, lambda: 0.0)


@pytest.fixture(scope="module")
def weights_dir(fashion_classes: WriteClasses, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    data = fashion_classes(folder / "half", TROUSERS_DRESSES_SANDALS_SNEAKERS_BOOTS, 1500)
    result = trained(SOURCE, data, RecipeSettings(epochs=6), folder / "artifacts")
    print(f"\nthe source: {result.evaluation.accuracy:.3f} on its own five classes")
    tensors = load_file(folder / "artifacts" / result.checkpoint.path)
    averaged = {name[len("ema/") :]: value for name, value in tensors.items() if name.startswith("ema/")}
    save_file(averaged, folder / "source.safetensors")
    (folder / "source.json").write_text(json.dumps(SOURCE.to_dict()))
    return folder


def interval(differences: Sequence[float]) -> str:
    """Of the mean of three paired differences, at 95%, by Student's t."""
    half = T_OF_TWO_DEGREES * stdev(differences) / math.sqrt(3)
    return f"{mean(differences):+.3f} ({mean(differences) - half:+.3f} to {mean(differences) + half:+.3f})"


@pytest.mark.parametrize(
    "images, epochs, ways", [(100, 5, tuple(WAYS)), (300, 5, tuple(WAYS)), (1000, 9, ("fresh", "inherited"))]
)
def test_what_inheriting_adds(
    images: int,
    epochs: int,
    ways: Sequence[str],
    weights_dir: Path,
    fashion_classes: WriteClasses,
    tmp_path: Path,
) -> None:
    """Three seeds, scored on 1,000 images; the differences are to fresh weights, seed by seed."""
    data = fashion_classes(tmp_path / "rest", SHIRTS_PULLOVERS_COATS_BAGS, 700)
    data = dataclasses.replace(data, val_fraction=0.4, train_limit=images, val_limit=1000)
    for shape, spec in SHAPES.items():
        fresh: list[float] = []
        for name in ways:
            inherits, settings = WAYS[name]
            found: list[float] = []
            for seed in range(3):
                recipe = RecipeSettings(
                    epochs=epochs, batch_size=32, seed=seed, weights_dir=str(weights_dir), **settings
                )
                result = trained(spec, data, recipe, tmp_path / "artifacts", "source" if inherits else None)
                found.append(result.evaluation.accuracy)
            fresh = fresh or found
            more = "" if found is fresh else interval([a - b for a, b in zip(found, fresh, strict=True)])
            print(
                f"{images} images, {epochs} epochs, {shape:<13} {name:<29} {mean(found):.3f}  {more}",
                flush=True,
            )
