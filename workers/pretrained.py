"""Pretrained weights into a network of timm, by timm's own rules for networks of its family.

timm converts older layouts, resamples position embeddings and patch kernels to other image and patch sizes, and sums
or repeats the kernels of the first convolution for other image channels. Beyond that, the classifier begins with zeros,
the first blocks are taken where the network has fewer, and what timm itself leaves out of such a network is left out.
Anything else is an error: nothing stays random in silence.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import timm
import torch
from safetensors import SafetensorError
from timm.models import _builder, load_pretrained, load_state_dict
from torch import Tensor, nn

from spaces import models
from spaces.spec import ArchSpec
from workers.errors import CandidateError, WeightsError
from workers.memory_limit import is_out_of_memory

State = dict[str, Tensor]
Shape = tuple[int, ...]

_MISFITS = (RuntimeError, AssertionError, LookupError, ValueError, TypeError, AttributeError)
_UNREADABLE = (*_MISFITS, OSError, EOFError, SafetensorError, pickle.UnpicklingError)


@dataclass(frozen=True)
class Loaded:
    """What a training began from.

    sha256: of the file. data: what the weights were trained on, as timm's tag says, and None where there is no tag.
    image_size: side in pixels of those images, or None. num_tensors: loaded. resampled: of these, fitted to another
    shape. fresh: the classifier's, zeros. left_out: in the file, but not in the network. blocks: container -> how many
    of how many were taken, where not all were.
    """

    name: str
    file: str
    sha256: str
    data: str | None
    image_size: int | None
    num_tensors: int
    resampled: tuple[str, ...]
    fresh: tuple[str, ...]
    left_out: tuple[str, ...]
    blocks: Mapping[str, tuple[int, int]]

    def to_dict(self) -> dict[str, Any]:
        """JSON values, without those that are empty."""
        return json.loads(json.dumps({name: value for name, value in asdict(self).items() if value}))


def load(network: nn.Module, spec: ArchSpec, path: Path) -> Loaded:
    """Puts the weights spec.weights, in the file `path`, into the network of `spec` on the CPU.

    Raises WeightsError for a file that is not here or not to be opened, and CandidateError for one that is here and
    holds no weights, or others: it names the file, the first tensor that does not fit, and both shapes.
    """
    assert spec.weights is not None
    sha256 = _sha256(path)
    stored = _read(path)
    shapes = {name: tuple(tensor.shape) for name, tensor in stored.items() if isinstance(tensor, Tensor)}
    own = network.state_dict()
    with _naming(spec, path):
        fitted = _fit(network, spec, stored)
        load_pretrained(network, fitted.config, fitted.config["num_classes"], fitted.channels, strict=True)
    data, image_size = _origin(spec.weights)
    fresh = fitted.fresh
    return Loaded(
        name=spec.weights,
        file=str(path),
        sha256=sha256,
        data=data,
        image_size=image_size,
        num_tensors=len(own) - len(fresh),
        resampled=tuple(
            name for name, tensor in own.items() if name not in fresh and _differs(shapes.get(name), tensor)
        ),
        fresh=fresh,
        left_out=fitted.left_out,
        blocks=fitted.blocks,
    )


def check(specs: Iterable[ArchSpec], path: Path) -> None:
    """Whether the file `path` can be read and fits all networks whose weights it is, without memory for these.

    Raises CandidateError as `load` does.
    """
    stored = _read(path)
    for spec in specs:
        network = models.build_shapes(spec)
        with _naming(spec, path), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # timm's, about how it resamples
            _fit(network, spec, dict(stored))


@dataclass(frozen=True)
class _Fitted:
    """Weights that fit. config: as timm's `load_pretrained` takes them. channels: of the network's images.
    fresh, left_out, blocks: as in `Loaded`."""

    config: dict[str, Any]
    channels: int
    fresh: tuple[str, ...]
    left_out: tuple[str, ...]
    blocks: Mapping[str, tuple[int, int]]


def _fit(network: nn.Module, spec: ArchSpec, stored: State) -> _Fitted:
    """Drops the tensors of blocks that the network lacks from `stored`, too. Raises one of _MISFITS."""
    own, family = network.state_dict(), _family(spec)
    blocks = _drop_later_blocks(stored, own, network)  # a filter may look for its block in the network
    state = family.filtered(stored, network)
    blocks |= _drop_later_blocks(state, own, network)
    fresh = _fresh_classifier(state, own, family.classifiers, keep=_is_timms(spec.weights or ""))
    left_out = () if family.is_strict else _drop_unknown(state, own)
    channels, source = int(spec.args.get("in_chans", 3)), _channels(state, family.first_convs)
    _check(state, own, family.first_convs if channels != source else ())
    config = {"state_dict": state, "first_conv": family.first_convs or None, "input_size": (source, 0, 0)}
    config["num_classes"] = spec.args.get("num_classes", 1000)
    return _Fitted(config, channels, fresh, left_out, blocks)


@contextmanager
def _naming(spec: ArchSpec, path: Path) -> Iterator[None]:
    """What does not fit becomes a CandidateError."""
    try:
        yield
    except _MISFITS as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CandidateError(f"weights {spec.weights} do not fit {spec.model}: {reason} ({path})") from error


@dataclass(frozen=True)
class _Family:
    """How timm loads weights into networks of one entry point.

    filter: takes the file's tensors and the network, or the tensors alone. classifiers, first_convs: names of modules.
    is_strict: False where timm drops what such a network lacks.
    """

    filter: Callable[..., State] | None
    classifiers: tuple[str, ...]
    first_convs: tuple[str, ...]
    is_strict: bool

    def filtered(self, stored: State, network: nn.Module) -> State:
        if self.filter is None:
            return dict(stored)
        try:
            return dict(self.filter(stored, network))
        except TypeError:  # timm tells the two kinds apart in this way too
            return dict(self.filter(stored))


def _family(spec: ArchSpec) -> _Family:
    """Only timm's builders know the filter of a family: this has one build a network, without memory for it, and looks
    at what it hands to the function that would load the weights."""
    seen: list[dict[str, Any]] = []
    with torch.device("meta"), mock.patch.object(_builder, "load_pretrained") as stub:
        stub.side_effect = lambda _network, **known: seen.append(known)
        timm.create_model(spec.model, pretrained=True, **spec.args)
    config = seen[0]["pretrained_cfg"]
    return _Family(
        filter=seen[0]["filter_fn"],
        classifiers=_names(config.get("classifier")),
        first_convs=_names(config.get("first_conv")),
        is_strict=seen[0]["strict"],
    )


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsError(f"{path}: weights that cannot be opened: {error.strerror or error}") from error


def _read(path: Path) -> State:
    """The tensors of a file: a .safetensors file holds nothing else, and of others `torch.load(weights_only=True)`
    reads nothing else."""
    try:
        return load_state_dict(str(path), weights_only=True)
    except _UNREADABLE as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:150] or type(error).__name__
        raise CandidateError(f"{path}: no weights that can be read: {reason}") from error


def _fresh_classifier(state: State, own: State, classifiers: tuple[str, ...], keep: bool) -> tuple[str, ...]:
    """Puts zeros in for the classifier; keep: but for one that tells as many classes apart.

    A classifier of zeros, as in BiT (arXiv 1912.11370) and ViT (2010.11929), sends no noise into the layers below, and
    follows the images from the first step.
    """
    fresh: list[str] = []
    for classifier in classifiers:
        names = [name for name in own if name.rpartition(".")[0] == classifier]
        fits = all(name in state and len(state[name]) == len(own[name]) for name in names)
        if not (keep and fits):
            state.update({name: torch.zeros_like(own[name]) for name in names})
            fresh += names
    return tuple(fresh)


def _drop_later_blocks(state: State, own: State, network: nn.Module) -> dict[str, tuple[int, int]]:
    """Drops the tensors of blocks beyond the network's last one; container -> (blocks kept, blocks in the file)."""
    taken: dict[str, tuple[int, int]] = {}
    for name in [name for name in state if name not in own]:
        beyond = _beyond(network, name)
        if beyond is not None:
            container, kept, number = beyond
            taken[container] = (kept, max(number + 1, taken.get(container, (0, 0))[1]))
            del state[name]
    return taken


def _beyond(network: nn.Module, name: str) -> tuple[str, int, int] | None:
    """(container, its length, number) where `name` lies in a block after the last of a list of blocks."""
    module, path = network, []
    for part in name.split("."):
        child = dict(module.named_children()).get(part)
        if child is None:
            kept = len(module) if isinstance(module, nn.Sequential | nn.ModuleList) else 0
            is_beyond = part.isdecimal() and int(part) >= kept > 0
            return (".".join(path), kept, int(part)) if is_beyond else None
        module = child
        path.append(part)
    return None


def _drop_unknown(state: State, own: State) -> tuple[str, ...]:
    unknown = tuple(name for name in state if name not in own)
    for name in unknown:
        del state[name]
    return unknown


def _check(state: State, own: State, adapted: tuple[str, ...]) -> None:
    """Raises ValueError for the first tensor that does not fit. adapted: convolutions that timm will still fit."""
    for name, tensor in own.items():
        if name.endswith(".num_batches_tracked"):  # torch itself fills it in
            continue
        if name not in state:
            raise ValueError(f"{name} is {_shape(tensor)} in the network, and the file lacks it")
        if name.removesuffix(".weight") not in adapted and _differs(tuple(state[name].shape), tensor):
            raise ValueError(
                f"{name} is {_shape(state[name])} in the file, and {_shape(tensor)} in the network"
            )
    for name, tensor in state.items():
        if name not in own:
            raise ValueError(f"{name} is {_shape(tensor)} in the file, and the network lacks it")


def _channels(state: State, first_convs: tuple[str, ...]) -> int:
    """Image channels that the weights were trained for: 1 or 3."""
    for name in first_convs:
        kernels = state.get(f"{name}.weight")
        if kernels is not None and kernels.ndim == 4 and kernels.shape[1] == 1:
            return 1
    return 3


def _is_timms(name: str) -> bool:
    """Whether timm knows weights of this name, with its tag, and so the classes that they tell apart by their number:
    of a user's own files, nobody says whether those are the classes of the search."""
    return "." in name and timm.is_model_pretrained(name)


def _origin(name: str) -> tuple[str | None, int | None]:
    """What timm says of weights of its own: the tag, and the side of the images."""
    config = timm.get_pretrained_cfg(name) if _is_timms(name) else None
    return (None, None) if config is None else (config.tag, config.input_size[-1])


def _differs(shape: Shape | None, tensor: Tensor) -> bool:
    return shape is not None and shape != tuple(tensor.shape)


def _shape(tensor: object) -> str:
    return str(list(tensor.shape)) if isinstance(tensor, Tensor) else f"no tensor but {type(tensor).__name__}"


def _names(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
