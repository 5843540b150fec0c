"""Transfer, whole and without a network: a network is trained on half of Fashion-MNIST's classes, its weights become a
file of `weights_dir`, and the other half is learnt from them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch
from safetensors.torch import load_file, save_file

import spaces.models
from spaces.spec import ArchSpec
from workers.job import Decision, Job, Kind
from workers.settings import DataSettings, JobSettings, RecipeSettings
from workers.train import train

FASHION = Path("/usr/share/datasets/fashion-mnist")
WriteClasses = Callable[[Path, Sequence[int], int], DataSettings]
TROUSERS_DRESSES_SANDALS_SNEAKERS_BOOTS = (1, 3, 5, 7, 9)
SHIRTS_PULLOVERS_COATS_BAGS = (0, 2, 4, 6, 8)
VIT = ArchSpec(
    "vit_tiny_patch16_224",
    {
        "img_size": 28,
        "patch_size": 7,
        "embed_dim": 48,
        "depth": 3,
        "num_heads": 3,
        "mlp_ratio": 2.0,
        "class_token": False,
        "global_pool": "avg",
        "in_chans": 1,
        "num_classes": 5,
    },
    28,
)
T_OF_TWO_DEGREES = 4.303
"""Student's t at 97.5% with two degrees of freedom, for the interval of the mean of three differences."""


def trained(
    spec: ArchSpec, data: DataSettings, recipe: RecipeSettings, artifacts: Path, inherit: str | None = None
) -> tuple[float, Path]:
    """Validation accuracy after all epochs, and the checkpoint."""
    settings, epochs = JobSettings(data, recipe), recipe.epochs
    job = Job(1, 1, 1, Kind.TRAIN, "transfer", 1, spec, settings, str(artifacts), 1, epochs, inherit=inherit)
    result = train(job, torch.device("cpu"), lambda _: Decision.CONTINUE, lambda: 0.0)
    return result.evaluation.accuracy, artifacts / result.checkpoint.path


@pytest.fixture
def weights_dir(needs: Callable[[str, bool], None], fashion_classes: WriteClasses, tmp_path: Path) -> Path:
    """Holds `half`, trained on five classes, and `untrained`, the same network as it was drawn."""
    needs("Debian's package dataset-fashion-mnist", FASHION.is_dir())
    folder = tmp_path / "weights"
    folder.mkdir()
    data = fashion_classes(tmp_path / "half", TROUSERS_DRESSES_SANDALS_SNEAKERS_BOOTS, 1500)
    accuracy, checkpoint = trained(VIT, data, RecipeSettings(epochs=5), tmp_path / "artifacts")
    assert accuracy > 0.85
    tensors = load_file(checkpoint)
    averaged = {
        name.removeprefix("ema/"): value for name, value in tensors.items() if name.startswith("ema/")
    }
    save_file(averaged, folder / "half.safetensors")
    (folder / "half.json").write_text(json.dumps(VIT.to_dict()))
    torch.manual_seed(0)
    save_file(spaces.models.build(VIT).state_dict(), folder / "untrained.safetensors")
    return folder


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Of the mean of three paired differences, at 95%, by Student's t."""
    half = T_OF_TWO_DEGREES * stdev(differences) / math.sqrt(3)
    return mean(differences) - half, mean(differences) + half


@pytest.mark.usefixtures("one_thread")
def test_fine_tuning_beats_training_from_scratch_at_equal_epochs(
    weights_dir: Path, fashion_classes: WriteClasses, tmp_path: Path
) -> None:
    """100 images, 5 epochs, default settings of both recipes; scored on 1,000 images. The same fine-tuning from
    untrained weights tells what the weights do from what the recipe does."""
    data = fashion_classes(tmp_path / "rest", SHIRTS_PULLOVERS_COATS_BAGS, 700)
    data = dataclasses.replace(data, val_fraction=0.4, train_limit=100, val_limit=1000)
    found: dict[str | None, list[float]] = {}
    for weights in (None, "untrained", "half"):
        spec = dataclasses.replace(VIT, weights=weights)
        for seed in range(3):
            recipe = RecipeSettings(epochs=5, batch_size=32, seed=seed, weights_dir=str(weights_dir))
            accuracy, _ = trained(spec, data, recipe, tmp_path / "artifacts")
            found.setdefault(weights, []).append(accuracy)
    for other in (None, "untrained"):
        low, high = interval([a - b for a, b in zip(found["half"], found[other], strict=True)])
        print(
            f"fine-tuned {found['half']}, {other or 'from scratch'} {found[other]}: {low:+.3f} to {high:+.3f}"
        )
        assert low > 0


@pytest.mark.usefixtures("one_thread")
def test_a_smaller_network_learns_more_from_slices_than_from_fresh_weights(
    weights_dir: Path, fashion_classes: WriteClasses, tmp_path: Path
) -> None:
    """Two blocks of three; 100 images and 5 epochs, scored on 1,000 images."""
    data = fashion_classes(tmp_path / "rest", SHIRTS_PULLOVERS_COATS_BAGS, 700)
    data = dataclasses.replace(data, val_fraction=0.4, train_limit=100, val_limit=1000)
    smaller = dataclasses.replace(VIT, args={**VIT.args, "depth": 2})
    found: dict[str | None, list[float]] = {}
    for inherit in (None, "half"):
        for seed in range(3):
            recipe = RecipeSettings(epochs=5, batch_size=32, seed=seed, weights_dir=str(weights_dir))
            accuracy, _ = trained(smaller, data, recipe, tmp_path / "artifacts", inherit)
            found.setdefault(inherit, []).append(accuracy)
    low, high = interval([a - b for a, b in zip(found["half"], found[None], strict=True)])
    print(f"inherited {found['half']}, fresh {found[None]}: {low:+.3f} to {high:+.3f}")
    assert low > 0
