"""Tiny trained networks of every family, and folders that they were exported to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spaces.spec import ArchSpec
from workers.bundle import manifest
from workers.bundle.request import Request, Source
from workers.job import Decision, Job, Kind
from workers.settings import DataSettings, JobSettings, RecipeSettings

HEAD = {"in_chans": 1, "num_classes": 10}
VIT = {"img_size": 8, "patch_size": 2, "embed_dim": 16, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0}
SWIN = {
    "img_size": 8,
    "patch_size": 1,
    "window_size": 4,
    "embed_dim": 8,
    "depths": [1, 1],
    "num_heads": [1, 2],
}
HYBRID = {"stem_channels": [8, 16], "stem_strides": [2, 1], **VIT, "patch_size": 1}
RESNET = {"channels": [8, 8, 16, 16], "layers": [1, 1, 1, 1], "stem_stride": 1}
BACKBONE = {"backbone": "mobilenetv3_small_050", "stage": 1}
SPECS = {
    "vit": ArchSpec("vit_base_patch16_224", VIT | HEAD, 8),
    "swin": ArchSpec("swin_tiny_patch4_window7_224", SWIN | HEAD, 8),
    "hybrid": ArchSpec("paretovit_conv_stem_vit", HYBRID | HEAD, 8),
    "backbone": ArchSpec(
        "paretovit_backbone_vit", BACKBONE | HEAD | {key: VIT[key] for key in VIT if key != "patch_size"}, 8
    ),
    "resnet": ArchSpec("paretovit_resnet", RESNET | HEAD, 8),
    "sincos": ArchSpec("paretovit_sincos_vit", VIT | HEAD | {"reg_tokens": 1}, 8),
    "rotary": ArchSpec("paretovit_rotary_vit", VIT | HEAD | {"reg_tokens": 1}, 8),
    "relative": ArchSpec("vit_relpos_base_patch16_224", VIT | HEAD | {"rel_pos_type": "bias"}, 8),
    "resized": ArchSpec("paretovit_resnet", RESNET | HEAD, 12),
}
DATA = DataSettings("digits", train_limit=200, val_limit=100)


def train_tiny(folder: Path, name: str, **recipe: Any) -> Request:
    """One epoch of one of SPECS on 200 digits."""
    from workers.data.batches import resident
    from workers.train import train

    settings = JobSettings(DATA, RecipeSettings(**{"epochs": 1, "batch_size": 64} | recipe))
    job = Job(
        id=1,
        attempt=1,
        lease=1,
        kind=Kind.TRAIN,
        search="test",
        candidate=1,
        spec=SPECS[name],
        settings=settings,
        artifacts=str(folder),
        first_epoch=1,
        last_epoch=1,
    )
    result = train(job, torch.device("cpu"), lambda _: Decision.CONTINUE, lambda: 0.0)
    data = resident(DATA, torch.device("cpu"))
    source = Source(DATA, result.data_digest, data.image_size, data.channels, data.class_names)
    return Request(job.spec, job.artifacts, result.checkpoint, source)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Request]:
    """`train_tiny`, once for every family and recipe."""
    known: dict[str, Request] = {}

    def get(name: str, **recipe: Any) -> Request:
        key = f"{name} {recipe}"
        if key not in known:
            known[key] = train_tiny(tmp_path_factory.mktemp("trained"), name, **recipe)
        return known[key]

    return get


@pytest.fixture(scope="session")
def exported(
    trained: Callable[..., Request], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Exports one of SPECS, once; tests take a `copy` before they change anything."""
    known: dict[tuple[str, bool], Path] = {}

    def get(name: str, *, onnx: bool = False) -> Path:
        import dataclasses

        from workers.bundle.export import export

        if (name, onnx) not in known:
            request = dataclasses.replace(trained(name), onnx=onnx)
            target = tmp_path_factory.mktemp("exported") / name
            known[name, onnx] = export(request, target, lambda _: f"# {name}\n", {"search": "test"}).folder
        return known[name, onnx]

    return get


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[Path], Path]:
    """A copy of a folder, to be changed."""
    return lambda folder: Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.fixture
def reseal() -> Callable[[Path], None]:
    """Writes a manifest that fits a changed folder, as somebody who can write all of its files could."""

    def write(folder: Path) -> None:
        (folder / manifest.NAME).unlink(missing_ok=True)
        manifest.write(folder, {"search": "test", "sample": "changed"})

    return write
