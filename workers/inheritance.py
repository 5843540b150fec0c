"""A network that begins from parts of a larger pretrained one of its kind.

The larger network is first fitted to the images, at the smaller one's patches, by `workers.pretrained`; then
`workers.slicing` says which part of each tensor is taken. What is wider or deeper than the source keeps its fresh
weights there, and what the source has no counterpart of is fresh.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import timm
import torch
from timm.layers.patch_embed import PatchEmbed
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from spaces import models
from spaces.spec import ArchSpec
from spaces.zoo import architecture
from workers import pretrained
from workers.errors import CandidateError
from workers.finetuning import classifier_names
from workers.memory_limit import is_out_of_memory
from workers.slicing import Network, Slice, slices

FAMILIES = ("vit", "deit", "hybrid", "swin")
"""Whose networks can inherit."""
_WORDS = {VisionTransformer: "a plain vision transformer", SwinTransformer: "a Swin transformer"}


@dataclass(frozen=True)
class Inherited:
    """What a training began from. name, file, sha256, data, image_size: of the source, as in `pretrained.Loaded`.

    share: of the network's parameters that hold values of the source. num_whole: tensors taken as they are. sliced:
    those that are a part of one. widened: those that have more than there was, with fresh weights in the rest. fresh:
    those that took nothing, the classifier's among them, which are zeros. resampled: of the source, to other patches.
    source_blocks: container -> which of its blocks were taken, from 1, and of how many.
    """

    name: str
    file: str
    sha256: str
    data: str | None
    image_size: int | None
    share: float
    num_whole: int
    sliced: tuple[str, ...]
    widened: tuple[str, ...]
    fresh: tuple[str, ...]
    resampled: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values, without those that are empty."""
        return json.loads(json.dumps({name: value for name, value in asdict(self).items() if value}))


def inherit(network: nn.Module, spec: ArchSpec, name: str, path: Path) -> Inherited:
    """Puts what fits of the weights `name`, in the file `path`, into the network of `spec` on the CPU, whose fresh
    weights are drawn already.

    Raises WeightsError for a file that is not here or not to be opened, and CandidateError for one that is here and
    holds no weights, others than its name says, or those of another kind of network.
    """
    origin = source_spec(spec, name, path)
    source = _built(models.build, origin)
    loaded = pretrained.load(source, origin, path)
    found = _slices(network, source)
    theirs, own = dict(source.named_parameters()), dict(network.named_parameters())
    classifier = classifier_names(network)
    taken = {key: one for key, one in found.items() if key not in classifier}
    with torch.no_grad():
        for key in classifier:
            own[key].zero_()
        for key, one in taken.items():
            _copy(own[key], theirs[one.source], one)
    sizes = {key: math.prod(one.shape) for key, one in taken.items()}
    full = {key for key, size in sizes.items() if size == own[key].numel()}
    whole = {key for key in full if own[key].shape == theirs[taken[key].source].shape}
    return Inherited(
        name=name,
        file=str(path),
        sha256=loaded.sha256,
        data=loaded.data,
        image_size=loaded.image_size,
        share=sum(sizes.values()) / sum(parameter.numel() for parameter in own.values()),
        num_whole=len(whole),
        sliced=tuple(key for key in taken if key in full - whole),
        widened=tuple(key for key in taken if key not in full),
        fresh=tuple(key for key in own if key not in taken),
        resampled=loaded.resampled,
    )


def check(specs: Iterable[ArchSpec], name: str, path: Path | None) -> None:
    """Whether networks can inherit from the weights `name`, whose file may not be on this machine yet, and whether it
    fits them where it is; without memory for these. Raises CandidateError as `inherit` does."""
    for spec in specs:
        origin = source_spec(spec, name, path)
        _slices(models.build_shapes(spec), _built(models.build_shapes, origin))
        if path is not None:
            pretrained.check([origin], path)


def source_spec(spec: ArchSpec, name: str, path: Path | None) -> ArchSpec:
    """The network of the weights `name` for the images and at the patches of `spec`.

    Beside a file that is no timm network's, NAME.json says which it is: `spec.json` of an exported model. Raises
    CandidateError where nothing says it.
    """
    known = _described(path.with_name(f"{name}.json")) if path is not None else None
    model = architecture(name) if known is None else known.model
    if not timm.is_model(model):
        where = "beside its file" if path is None else f"beside {path}"
        raise CandidateError(
            f"weights {name}: {model!r} is no network of timm, and no {name}.json {where} names one"
        )
    args = {} if known is None else dict(known.args)
    _check_kind(spec, _built(models.build_shapes, ArchSpec(model, args, weights=name)))
    own = {key: spec.args[key] for key in ("img_size", "in_chans", "num_classes") if key in spec.args}
    return ArchSpec(model, {**args, **own, **_patches(spec)}, spec.image_size, name)


def _described(path: Path) -> ArchSpec | None:
    try:
        return ArchSpec.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CandidateError(
            f"{path}: does not describe a network as spec.json of an export does ({error})"
        ) from None


def _patches(spec: ArchSpec) -> dict[str, Any]:
    """The arguments that cut an image into as many patches as the network of `spec` does, and into its windows."""
    if "stem_strides" in spec.args:
        return {"patch_size": math.prod(spec.args["stem_strides"])}
    return {key: spec.args[key] for key in ("patch_size", "window_size") if key in spec.args}


def _check_kind(spec: ArchSpec, source: nn.Module) -> None:
    """Raises CandidateError where the source is another kind of network, or makes its patches in another way."""
    own = models.build_shapes(spec)
    kind = SwinTransformer if isinstance(own, SwinTransformer) else VisionTransformer
    if not isinstance(source, kind):
        raise CandidateError(
            f"{spec.model} cannot inherit from a {type(source).__name__}; only from {_WORDS[kind]}"
        )
    if not isinstance(source.patch_embed, PatchEmbed):
        raise CandidateError(f"{spec.model} cannot inherit from a network with a stem before its patches")


def _built(build: Callable[[ArchSpec], nn.Module], origin: ArchSpec) -> nn.Module:
    try:
        return build(origin)
    except models.REFUSALS as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise CandidateError(
            f"weights {origin.weights}: {origin.model} does not fit the images: {reason}"
        ) from error


def _slices(network: nn.Module, source: nn.Module) -> dict[str, Slice]:
    return slices(_described_network(network), _described_network(source))


def _described_network(network: nn.Module) -> Network:
    """As `slicing` sees it."""
    grid: Any = getattr(getattr(network, "patch_embed", None), "grid_size", (0, 0))
    stages: Any = getattr(network, "num_layers", 1)
    return Network(
        shapes={name: tuple(parameter.shape) for name, parameter in network.named_parameters()},
        heads={
            name: int(module.num_heads)  # pyright: ignore[reportArgumentType]
            for name, module in network.named_modules()
            if name.endswith(".attn") and hasattr(module, "num_heads")
        },
        num_patches=math.prod(grid),
        num_stages=stages if isinstance(network, SwinTransformer) else 1,
    )


def _copy(own: Tensor, theirs: Tensor, one: Slice) -> None:
    to = torch.meshgrid(*(torch.tensor(places[0]) for places in one.axes), indexing="ij")
    taken = torch.meshgrid(*(torch.tensor(places[1]) for places in one.axes), indexing="ij")
    own[to] = theirs[taken] * one.gain
