"""What recipe deit gains over plain, by epochs, on 6,000 images of Fashion-MNIST.

STUDY_RESULTS=recipes.jsonl pytest -s -m benchmark tests/benchmarks/test_recipes.py

Every training takes minutes and is written to the file as it ends; those that are in it already are not done again. So
the study may be done in parts, also beside each other: STUDY_EPOCHS=3,9, STUDY_FAMILIES=vit,swin,
STUDY_RECIPES=plain,deit and STUDY_SEEDS=0,1,2 choose. The summary is of all that the file holds.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from statistics import NormalDist, mean, stdev
from typing import Any

import pytest
import torch

from spaces.registry import make_space
from spaces.space import FAMILY
from spaces.spec import ArchSpec, Task
from workers.job import Decision, Job, Kind
from workers.settings import DataSettings, JobSettings, RecipeSettings
from workers.train import train

pytestmark = pytest.mark.benchmark
FASHION = Path("/usr/share/datasets/fashion-mnist")
ENCODER = {"heads": 2, "head_width": 24, "mlp_ratio": 3.0, "pooling": "average"}
STAGES = {"num_stages": 2, "depth_1": 1, "depth_2": 2, "heads": 2, "head_width": 16, "mlp_ratio": 2.0}
POINTS: dict[str, dict[str, Any]] = {
    "vit": {"patch_size": 7, "depth": 4, **ENCODER},
    "swin": {"patch_size": 4, "window": 7, **STAGES},
    "hybrid": {"stride": 4, "stem_depth": 2, "stem_width": 8, "depth": 2, **ENCODER},
}
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}
"""Two-sided 95% points of Student's distribution, by degrees of freedom."""
Key = tuple[str, int, str, int]
"""Family, epochs, recipe, seed."""


def chosen(name: str, default: str) -> list[str]:
    return os.environ.get(f"STUDY_{name}", default).split(",")


def keys() -> list[Key]:
    """Seeds outermost, so that a study that is broken off has something of everything."""
    return [
        (family, int(epochs), recipe, int(seed))
        for seed in chosen("SEEDS", "0,1,2")
        for epochs in chosen("EPOCHS", "3,9,27,81")
        for family in chosen("FAMILIES", ",".join(POINTS))
        for recipe in chosen("RECIPES", "plain,deit")
    ]


def network(family: str) -> ArchSpec:
    space = make_space(Task(28, 1, 10), "tiny", [family], {})
    return space.spec(
        {FAMILY: family, **{f"{family}.{name}": value for name, value in POINTS[family].items()}}
    )


def accuracy(key: Key, folder: Path) -> dict[str, Any]:
    family, epochs, recipe, seed = key
    data = DataSettings("idx", str(FASHION), train_limit=6000, val_limit=2000)
    settings = JobSettings(data, RecipeSettings(recipe=recipe, epochs=epochs, seed=seed))  # pyright: ignore[reportArgumentType]
    job = Job(1, 1, 1, Kind.TRAIN, "study", 1, network(family), settings, str(folder), 1, epochs)
    result = train(job, torch.device("cpu"), lambda _: Decision.CONTINUE, lambda: 0.0)
    return {
        "key": key,
        "accuracy": result.evaluation.accuracy,
        "val_loss": result.evaluation.loss,
        "train_loss": result.epochs[-1].train_loss,
        "seconds_an_epoch": round(mean(report.seconds for report in result.epochs), 2),
    }


def interval(values: list[float]) -> str:
    """Mean and half of its 95% interval, in points."""
    if len(values) < 2:
        return f"{100 * mean(values):5.2f}"
    factor = T_95.get(len(values) - 1, NormalDist().inv_cdf(0.975))
    return f"{100 * mean(values):5.2f} ± {100 * factor * stdev(values) / math.sqrt(len(values)):.2f}"


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Accuracies by recipe, and their differences seed by seed; of a family, and of all together."""
    found = {tuple(row["key"]): row["accuracy"] for row in rows}
    others = sorted({recipe for _, _, recipe, _ in found} - {"plain"})
    lines = []
    for epochs in sorted({key[1] for key in found}):
        gains: dict[str, list[float]] = {recipe: [] for recipe in others}
        for family in POINTS:
            texts = [f"{epochs:3} epochs  {family:7}"]
            plain = {key[3]: value for key, value in found.items() if key[:3] == (family, epochs, "plain")}
            texts += [f"plain {interval(list(plain.values()))}"] if plain else []
            for recipe in others:
                own = {key[3]: value for key, value in found.items() if key[:3] == (family, epochs, recipe)}
                pairs = [own[seed] - plain[seed] for seed in own if seed in plain]
                gains[recipe] += pairs
                texts += [f"{recipe} {interval(list(own.values()))}"] if own else []
                texts += [f"difference {interval(pairs)} ({len(pairs)} seeds)"] if pairs else []
            lines.append("  ".join(texts))
        lines += [f"{epochs:3} epochs  all      {recipe} {interval(g)}" for recipe, g in gains.items() if g]
    return lines


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.timeout(0)
def test_what_deit_gains_over_plain_by_epochs(tmp_path: Path) -> None:
    if not FASHION.exists():
        pytest.skip(f"{FASHION} is not there")
    torch.set_num_threads(1)
    path = Path(os.environ.get("STUDY_RESULTS", str(tmp_path / "recipes.jsonl")))
    for key in keys():
        if any(tuple(row["key"]) == key for row in read(path)):
            continue
        row = accuracy(key, tmp_path)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
    print("\n".join(summary(read(path))))
