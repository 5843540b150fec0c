"""What learning from a convolutional teacher adds on few images: Fashion-MNIST, 3,000 images for training.

pytest -s -m benchmark tests/benchmarks/test_distillation.py -k 27

The number is that of the epochs, 12 or 27; docs/distillation.md has what was seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest
import torch

from spaces.analysis import analyse
from spaces.registry import make_space
from spaces.resnet import resnet
from spaces.spec import ArchSpec, Task
from workers.distillation_settings import DistillationSettings, TeacherSettings
from workers.evaluate import evaluate_checkpoint, wilson
from workers.job import Decision, Job, Kind, TeacherRef
from workers.settings import DataSettings, JobSettings, RecipeSettings
from workers.teach import teach
from workers.train import train

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(6 * 3600)]
CPU = torch.device("cpu")
FASHION = "/usr/share/datasets/fashion-mnist"
TASK = Task(image_size=28, channels=1, num_classes=10)
SEEDS = (0, 1, 2)
TEACHER = resnet(TASK, 12, 1)
Way = tuple[str, float, float | None]
"""Kind, alpha and temperature of learning from a teacher."""
WAYS: dict[str, tuple[Way | None, ...]] = {
    "vit": (None, ("soft", 0.5, 3.0), ("soft", 0.9, 2.0), ("hard", 0.5, None)),
    "deit": (None, ("token", 0.5, None)),
}


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network(family: str) -> ArchSpec:
    values = {"patch_size": 4, "depth": 4, "heads": 4, "head_width": 16, "mlp_ratio": 2.0}
    values |= {"pooling": "average"} if family == "vit" else {}
    space = make_space(TASK, families=[family], overrides={family: {k: [v] for k, v in values.items()}})
    return space.spec({"family": family, **{f"{family}.{key}": value for key, value in values.items()}})


def distillation(way: Way) -> DistillationSettings:
    kind, alpha, temperature = way
    return DistillationSettings(TeacherSettings(train="resnet"), kind, alpha, temperature)  # pyright: ignore[reportArgumentType]


def job(seed: int, epochs: int, artifacts: Path, spec: ArchSpec, way: Way | None, **more: object) -> Job:
    settings = JobSettings(
        DataSettings("idx", FASHION, train_limit=3000, val_limit=500),
        RecipeSettings(
            epochs=epochs, batch_size=64, seed=seed, distillation=distillation(way) if way else None
        ),
    )
    whole = Job(1, 1, 1, Kind.TRAIN, "benchmark", 1, spec, settings, str(artifacts), 1, epochs)
    return dataclasses.replace(whole, **more)  # pyright: ignore[reportArgumentType]


def taught(seed: int, epochs: int, artifacts: Path) -> tuple[TeacherRef, float]:
    """The teacher of a seed, and its accuracy on the test split."""
    asked = job(seed, epochs, artifacts, TEACHER, ("soft", 0.5, None), kind=Kind.TEACH, candidate=0)
    made = teach(asked, CPU, lambda _: Decision.CONTINUE, lambda: 0.0)
    found, _ = evaluate_checkpoint(dataclasses.replace(asked, checkpoint=made.checkpoint), CPU, "test")
    return TeacherRef("resnet", TEACHER, made.checkpoint), found.accuracy


@pytest.mark.parametrize("epochs", [12, 27])
@pytest.mark.usefixtures("one_thread")
def test_learning_from_a_teacher_against_learning_from_labels(epochs: int, tmp_path: Path) -> None:
    scores: dict[tuple[str, Way | None], list[float]] = {}
    teachers: list[float] = []
    print(f"\nteacher: {analyse(TEACHER).params:,} parameters")
    for seed in SEEDS:
        teacher, accuracy = taught(seed, epochs, tmp_path / str(seed))
        teachers.append(accuracy)
        print(f"seed {seed}, teacher: {100 * accuracy:.2f}", flush=True)
        for family, ways in WAYS.items():
            for way in ways:
                asked = job(
                    seed,
                    epochs,
                    tmp_path / str(seed),
                    network(family),
                    way,
                    teacher=teacher if way else None,
                )
                made = train(asked, CPU, lambda _: Decision.CONTINUE, lambda: 0.0)
                found, _ = evaluate_checkpoint(
                    dataclasses.replace(asked, checkpoint=made.checkpoint), CPU, "test"
                )
                scores.setdefault((family, way), []).append(found.accuracy)
                print(f"seed {seed}, {family}, {words(way)}: {100 * found.accuracy:.2f}", flush=True)
    print(_line("teacher", teachers))
    for (family, way), found in scores.items():
        params = analyse(network(family)).params
        gain = mean(found) - mean(scores[family, None])
        print(_line(f"{family} ({params:,}), {words(way)}", found), f"{100 * gain:+.2f} points")
    assert all(mean(teachers) > mean(scores[family, None]) for family in WAYS)


def words(way: Way | None) -> str:
    if way is None:
        return "labels alone"
    kind, alpha, temperature = way
    return f"{kind}, alpha {alpha:g}" + (f", temperature {temperature:g}" if temperature else "")


def _line(what: str, found: list[float]) -> str:
    """Mean over the seeds, with the interval that 10,000 test images leave: each seed is scored on the same ones."""
    low, high = wilson(round(mean(found) * 10_000), 10_000)
    each = " ".join(f"{100 * value:.2f}" for value in found)
    return f"{what:<30} {100 * mean(found):.2f} ({100 * low:.2f} to {100 * high:.2f}); {each};"
