"""What is to be exported. Without torch, so that mistakes are found before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from spaces.spec import ArchSpec
from workers.job import CheckpointRef
from workers.settings import DataSettings


@dataclass(frozen=True)
class Source:
    """What a search knows of its images. image_size: side of the pixels. digest: of the images trained on."""

    settings: DataSettings
    digest: str
    image_size: int
    channels: int
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """One trained network. artifacts: the folder that `checkpoint.path` starts at. onnx: write model.onnx too.
    images: bring validation images along; else noise."""

    spec: ArchSpec
    artifacts: str
    checkpoint: CheckpointRef
    source: Source
    onnx: bool = False
    images: bool = True
