"""What tests of workers share: lock files of their own, and other processes to contend with."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from spaces.spec import ArchSpec
from workers.job import Job, Kind
from workers.settings import DataSettings, JobSettings, RecipeSettings

Start = Callable[..., subprocess.Popen[str]]
Needs = Callable[[str, bool], None]


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Device locks of this test alone, inherited by the processes that it starts."""
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path / "runtime"))
    return tmp_path / "runtime"


@pytest.fixture
def needs() -> Needs:
    """Skips with a reason where something is absent from this machine; in CI (CI=true) its absence fails."""

    def check(reason: str, is_present: bool) -> None:
        if is_present:
            return
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI lacks what this test needs: {reason}")
        pytest.skip(reason)

    return check


@pytest.fixture
def start() -> Iterator[Start]:
    """Runs Python code in a process of its own, which is killed at the end of the test."""
    running: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        running.append(process)
        return process

    yield run
    for process in running:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Torch with one thread, as in a worker whose steps are to be the same bits again."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def train_job(tmp_path: Path) -> Callable[..., Job]:
    """A job that trains a tiny ViT on 200 digits; keywords replace fields of the job, or of its recipe."""

    def make(first: int, last: int, **changes: Any) -> Job:
        fields = {field.name for field in dataclasses.fields(Job)}
        recipe = {name: value for name, value in changes.items() if name not in fields}
        job = {name: value for name, value in changes.items() if name in fields}
        settings = JobSettings(
            DataSettings("digits", train_limit=200, val_limit=100),
            RecipeSettings(**{"epochs": 4, "batch_size": 64, "max_shift": 0.13} | recipe),
        )
        return Job(
            **{
                "id": 7,
                "attempt": 1,
                "lease": 1,
                "kind": Kind.TRAIN,
                "search": "test",
                "candidate": 3,
                "spec": tiny_vit(),
                "settings": settings,
                "artifacts": str(tmp_path / "artifacts"),
                "first_epoch": first,
                "last_epoch": last,
            }
            | job
        )

    return make


@pytest.fixture
def fine_tune_job(train_job: Callable[..., Job], tmp_path: Path) -> Callable[..., Job]:
    """`train_job` of the tiny ViT from weights of a network for 12 classes, with another block, at 16 px."""
    import torch
    from safetensors.torch import save_file

    import spaces.models

    folder = tmp_path / "weights"
    folder.mkdir()
    torch.manual_seed(0)
    source = spaces.models.build(tiny_vit(img_size=16, depth=3, num_classes=12))
    save_file(source.state_dict(), folder / "other.safetensors")

    def make(first: int, last: int, **changes: Any) -> Job:
        spec = dataclasses.replace(tiny_vit(), weights="other")
        return train_job(first, last, **{"spec": spec, "weights_dir": str(folder)} | changes)

    return make


def tiny_vit(**changes: int) -> ArchSpec:
    args = {"img_size": 8, "patch_size": 2, "embed_dim": 16, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0}
    pooling = {"class_token": False, "global_pool": "avg"}
    return ArchSpec("vit_base_patch16_224", args | pooling | {"in_chans": 1, "num_classes": 10} | changes, 8)


@pytest.fixture
def image_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes a folder of random PNG images: classes `cat` and `dog` below each of `splits`."""

    def make(splits: dict[str, int] | None = None, name: str = "images") -> Path:
        root = tmp_path / name
        generator = np.random.default_rng(0)
        for split, count in (splits or {"": 10}).items():
            for label in ("cat", "dog"):
                folder = root / split / label
                folder.mkdir(parents=True)
                for number in range(count):
                    pixels = generator.integers(0, 256, (12, 16, 3), np.uint8)
                    Image.fromarray(pixels).save(folder / f"{number}.png")
        return root

    return make
