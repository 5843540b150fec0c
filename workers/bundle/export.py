"""Writes a trained network as a folder that needs torch and timm alone, and checks it before it counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import timm
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

import spaces.models
from spaces.entry_points import ENTRY_POINTS
from spaces.spec import ArchSpec
from workers import checkpoint
from workers.bundle import manifest, sample
from workers.bundle.folder import check, new_folder
from workers.bundle.request import Request
from workers.bundle.sample import Sample
from workers.bundle.source import modeling_source
from workers.bundle.verify import Verified, verify
from workers.data.batches import DeviceData
from workers.errors import CandidateError, CheckpointError, ExportError
from workers.runtimes import onnx_runtime
from workers.runtimes.torch_runtime import check_output


@dataclass(frozen=True)
class Contents:
    """What a card has to know of a folder that is about to be sealed. weights: how the pretrained ones that training
    began from were used, as `workers.pretrained` says it; None for fresh ones."""

    preprocessing: Mapping[str, Any]
    sample: Sample
    onnx: bool
    weights: Mapping[str, Any] | None


@dataclass(frozen=True)
class Exported:
    folder: Path
    contents: Contents
    verified: Verified


Card = Callable[[Contents], str]
"""The text of README.md."""


def export(request: Request, target: Path, card: Card, facts: Mapping[str, Any]) -> Exported:
    """Makes the folder `target`, with the weights that were validated: averaged ones where there are any.

    facts: further ones for the manifest, plain JSON. Raises ExportError, and then `target` is as it was: for a target
    that is not new or empty, a missing package, a checkpoint that is gone or damaged, a network that is not timm's or
    ours, one that cannot be converted or does not give the same scores again in a process of its own.
    """
    check(target)
    if request.onnx:
        onnx_runtime.check_installed()
    network, metadata = _trained(request)
    images = sample.take(request.source, metadata, request.images)
    weights = json.loads(metadata["weights"]) if "weights" in metadata else None
    contents = Contents(_preprocessing(request.spec, images.data), images, request.onnx, weights)
    with new_folder(target) as folder:
        _write(folder, request, network, contents)
        (folder / manifest.CARD).write_text(card(contents), encoding="utf-8")
        manifest.write(folder, _facts(contents) | dict(facts))
        verified = _verified(folder, target)
    return Exported(target, contents, verified)


def _verified(folder: Path, target: Path) -> Verified:
    """As of `target`, which `folder` is going to be."""
    try:
        return replace(verify(folder), folder=str(target))
    except ExportError as error:
        raise ExportError(str(error).replace(str(folder), str(target))) from error


def _trained(request: Request) -> tuple[nn.Module, dict[str, str]]:
    """The network with its scored weights, in evaluation mode on the CPU; the checkpoint's metadata."""
    spec = request.spec
    for model in {spec.model, spec.args.get("backbone", spec.model)}:
        _refuse_foreign(model)
    try:
        network = spaces.models.build(spec).eval()
        metadata = checkpoint.load_scored(request.artifacts, request.checkpoint, network)
    except CheckpointError as error:
        raise ExportError(str(error)) from error
    except OSError as error:
        raise ExportError(f"{error.filename}: cannot be read ({error.strerror})") from error
    except (TypeError, ValueError, AssertionError, RuntimeError) as error:
        raise ExportError(
            f"model {spec.model} cannot be built: {' '.join(str(error).split())[:200]}"
        ) from error
    if metadata.get("spec") != spec.digest:
        raise ExportError(f"{request.checkpoint.path}: is a checkpoint of another architecture")
    return network, metadata


def _refuse_foreign(model: str) -> None:
    """A folder carries timm's networks by name and ours by their text; it cannot carry those of a plugin."""
    ours = {entry_point.__name__ for entry_point in ENTRY_POINTS}
    if model in ours:
        return
    if not timm.is_model(model) or not timm.model_entrypoint(model).__module__.startswith("timm."):
        raise ExportError(
            f"model {model!r} is neither timm's nor paretovit's: an export cannot bring its code along"
        )


def _preprocessing(spec: ArchSpec, data: DeviceData) -> dict[str, Any]:
    """pixels_size: side that an image is cropped and scaled to; image_size: side that the network takes, to which the
    normalised image is scaled where it is another. mean, std: of bytes."""
    return {
        "pixels_size": data.image_size,
        "image_size": spec.image_size,
        "channels": data.channels,
        "crop": "largest square in the middle",
        "interpolation": "bicubic",
        "range": [0, 255],
        "mean": data.mean.flatten().tolist(),
        "std": [1 / scale for scale in data.scale.flatten().tolist()],
        "class_names": list(data.class_names),
    }


def _write(folder: Path, request: Request, network: nn.Module, contents: Contents) -> None:
    """Everything but the card and the manifest. The stored scores are eager torch's in fp32."""
    source = modeling_source(request.spec.model)
    (folder / manifest.MODELING).write_text(source, encoding="utf-8")
    _write_json(folder / manifest.SPEC, request.spec.to_dict())
    _write_json(folder / manifest.PREPROCESSING, contents.preprocessing)
    state = {name: value.contiguous() for name, value in network.state_dict().items()}
    _save(folder / manifest.WEIGHTS, state)
    pixels = torch.from_numpy(contents.sample.pixels)
    images = contents.sample.data.at(request.spec.image_size).normalise(pixels)
    with torch.inference_mode():
        scores = network(images)
    try:
        check_output(scores, len(images))
    except CandidateError as error:
        raise ExportError(str(error)) from error
    _save(folder / manifest.SAMPLE, {"pixels": pixels, "scores": scores.clone()})
    if request.onnx:
        onnx_runtime.convert(network, images, folder / manifest.ONNX)


def _save(path: Path, tensors: dict[str, Tensor]) -> None:
    try:
        save_file(tensors, path, {"format": "pt"})
    except SafetensorError as error:
        raise ExportError(f"{path.name}: cannot be written ({error})") from error


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="ascii")


def _facts(contents: Contents) -> dict[str, Any]:
    weights = {name: value for name, value in (contents.weights or {}).items() if name != "file"}
    return {
        "torch": str(torch.__version__),
        "timm": timm.__version__,
        "sample": contents.sample.words,
        **({"weights": weights} if weights else {}),
    }
