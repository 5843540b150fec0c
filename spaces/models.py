"""ArchSpec -> network, through timm; registers our own entry points with timm. What timm itself says of its models."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import timm
import torch
from timm.models import FeatureInfo, get_deprecated_models, register_model
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from spaces.backbone import Cut, Features
from spaces.costs import Cost
from spaces.entry_points import ENTRY_POINTS
from spaces.networks.backbone import feature_network
from spaces.spec import ArchSpec
from spaces.zoo import Pretrained, architecture

for _entry_point in ENTRY_POINTS:
    register_model(_entry_point)

_OURS = {entry_point.__name__ for entry_point in ENTRY_POINTS}


def build(spec: ArchSpec, stochastic_depth: float | None = None) -> nn.Module:
    """The network of a spec with random weights, in training mode; nothing is downloaded.

    stochastic_depth: drop rate of the last block, growing linearly with depth; None is 0. Raises TypeError,
    ValueError, AssertionError or RuntimeError, as timm does, for arguments that do not go together, and TypeError
    for a positive rate where the model has no stochastic depth.
    """
    return _create(spec, stochastic_depth or 0.0)


def build_shapes(spec: ArchSpec) -> nn.Module:
    """The network on the meta device: shapes without memory or values. Raises what `build` does."""
    with torch.device("meta"), _NoFills():
        return _create(spec, 0.0)


class _NoFills(TorchFunctionMode):
    """Leaves out what only gives values to tensors, which have none on the meta device: most of the time there."""

    _FILLS = frozenset(
        getattr(torch.Tensor, f"{name}_")
        for name in ("add", "clamp", "erfinv", "fill", "mul", "normal", "uniform", "zero")
    )

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in self._FILLS and args[0].is_meta:
            return args[0]
        return func(*args, **(kwargs or {}))


def count(spec: ArchSpec) -> int:
    """Number of parameters of any timm model, counted without memory for the weights."""
    return sum(parameter.numel() for parameter in build_shapes(spec).parameters())


def _create(spec: ArchSpec, stochastic_depth: float) -> nn.Module:
    if not timm.is_model(spec.model):
        raise ValueError(f"model {spec.model!r} is not an entry point of timm {timm.__version__}")
    foreign = sorted(_NEVER & spec.args.keys())
    if foreign:
        raise ValueError(
            f"model {spec.model}: argument {foreign[0]!r} is not allowed: weights are never loaded here"
        )
    try:
        return timm.create_model(spec.model, **{"drop_path_rate": stochastic_depth, **spec.args})
    except TypeError as error:
        if "drop_path_rate" not in str(error) or stochastic_depth:
            raise
    return timm.create_model(spec.model, **spec.args)


_NEVER = {"pretrained", "pretrained_cfg", "pretrained_cfg_overlay", "checkpoint_path", "cache_dir"}


def nearest_pretrained(name: str) -> list[str]:
    """Weights of timm whose names are like this one, at most 3; those of the same architecture first."""
    offered = timm.list_pretrained()
    same = [other for other in offered if architecture(other) == architecture(name)]
    return (same or difflib.get_close_matches(name, offered, 3, cutoff=0.5))[:3]


def has_pretrained(name: str) -> bool:
    """Whether timm offers weights of exactly this name, architecture and tag (`resnet18.a1_in1k`)."""
    return "." in name and timm.is_model_pretrained(name)


def has_fixed_size(model: str) -> bool:
    """Whether an entry point of timm builds networks for images of one size, which its argument `img_size` says."""
    config = timm.get_pretrained_cfg(model)
    return config is not None and config.fixed_input_size


def nearest_models(name: str) -> list[str]:
    """Entry points of timm whose names are like this one, at most 3."""
    offered = [other for other in timm.list_models() if other not in _OURS]
    return difflib.get_close_matches(architecture(name), offered, 3, cutoff=0.5)


@cache
def features(name: str) -> Features:
    """What building it tells of timm's network `name`: its feature levels, and each cut by it at each image size.

    Raises ValueError, with the remedy, where timm does not know the name, knows it as an old one, or has no feature
    levels of it. The text follows upon the name.
    """
    if name in _OURS or "." in name or not timm.is_model(name):
        near = ", ".join(nearest_models(name)) or "nothing near"
        raise ValueError(f"is not an entry point of timm {timm.__version__}; timm has {near}")
    if name in get_deprecated_models():
        current = architecture(get_deprecated_models()[name] or "none")
        raise ValueError(f"is an old name in timm; the present one is {current}")
    try:
        with torch.device("meta"), _NoFills():
            levels = timm.create_model(name, features_only=True, feature_cls="getter").feature_info
    except REFUSALS as error:
        raise ValueError(
            f"has no feature levels in timm ({_one_line(error)}); name another network"
        ) from None

    @cache
    def cut(stage: int, image_size: int, in_chans: int) -> Cut | str:
        try:
            return _cut(name, stage, image_size, in_chans)
        except REFUSALS as error:
            return f"it does not run on {image_size} px images: {_one_line(error)}"

    assert isinstance(levels, FeatureInfo)
    return Features(len(levels.info), cut)


def _cut(name: str, stage: int, image_size: int, in_chans: int) -> Cut | str:
    """The network up to a feature level, counted without memory for it; or why it is of no use before a transformer."""
    with torch.device("meta"), _NoFills():
        network = feature_network(name, stage, in_chans, image_size).eval()
    with torch.device("meta"), sdpa_kernel(SDPBackend.MATH), _Scores() as scores, _Counter() as counter:
        found = network(torch.zeros(1, in_chans, image_size, image_size))[-1]
    if found.ndim != 4 or found.shape[2] != found.shape[3]:
        return f"it gives {list(found.shape)} for an image, not a square map"
    if reason := _drops_pixels(getattr(network, "model", network), image_size):
        return reason
    trained = {key: value for key, value in network.named_parameters() if value.requires_grad}
    used = torch.autograd.grad(found.sum(), list(trained.values()), allow_unused=True)
    idle = [key for key, gradient in zip(trained, used, strict=True) if gradient is None]
    if idle:
        return f"timm leaves layers behind it that do nothing ({idle[0]})"
    cost = replace(counter.cost, params=sum(p.numel() for p in network.parameters()), unstored=scores.count)
    shapes = [tuple(value.shape) for value in network.state_dict().values()]
    _, channels, side, _ = found.shape
    return Cut(side, channels, cost, (str(network), str(shapes), side, channels))


class _Counter(TorchDispatchMode):
    """Counts what matrix multiplications and convolutions do, by torch's own formulas."""

    def __init__(self) -> None:
        super().__init__()
        self.cost = Cost()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            flops = formula(*args, **(kwargs or {}), out_val=out)
            is_convolution = func.overloadpacket is torch.ops.aten.convolution
            self.cost += Cost(
                flops=flops, activations=out.numel(), convolution_flops=flops if is_convolution else 0
            )
        return out


class _Scores(TorchFunctionMode):
    """Counts the scores of fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is functional.scaled_dot_product_attention:
            queries, keys = args[:2]
            self.count += math.prod(queries.shape[:-1]) * keys.shape[-2]
        return func(*args, **(kwargs or {}))


@cache
def pretrained(name: str) -> Pretrained:
    """What building it tells of the network of any weights: used whole, at the image sizes at which it runs.

    Raises ValueError where timm does not know the architecture.
    """
    arch = architecture(name)
    if not timm.is_model(arch):
        raise ValueError(f"{arch!r} is not an entry point of timm {timm.__version__}")
    takes_size = has_fixed_size(arch)

    @cache
    def refuses(image_size: int) -> str | None:
        sized = {"img_size": image_size} if takes_size else {}
        return why_not(ArchSpec(arch, {"in_chans": 3, "num_classes": 2, **sized}, image_size))

    return Pretrained(depth=None, takes_size=takes_size, refuses=refuses)


def why_not(spec: ArchSpec) -> str | None:
    """Why a network does not build or does not classify an image of its size; tried without memory for either.

    Patches that do not divide the image are a reason where timm would drop what remains, not where it pads.
    """
    size, num_classes = spec.image_size, spec.args["num_classes"]
    try:
        model = build_shapes(spec).eval()
        with torch.device("meta"), torch.no_grad():
            scores = model(torch.zeros(1, spec.args["in_chans"], size, size))
    except REFUSALS as error:
        return f"it does not run on {size} px images: {_one_line(error)}"
    if reason := _drops_pixels(model, size):
        return reason
    shape = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
    return None if shape == (1, num_classes) else f"it gives {shape} for an image, not a score a class"


def _drops_pixels(model: nn.Module, image_size: int) -> str | None:
    """Why pixels of an image would be left out in silence, or None."""
    embedding = getattr(model, "patch_embed", None)
    patch = getattr(embedding, "patch_size", None)
    patch = patch[0] if isinstance(patch, tuple) else patch
    if isinstance(patch, int) and image_size % patch and not getattr(embedding, "dynamic_img_pad", False):
        return f"patches of {patch} px do not divide {image_size} px"
    return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


REFUSALS = (
    ValueError,
    TypeError,
    RuntimeError,
    AssertionError,
    LookupError,
    ArithmeticError,
    AttributeError,
)
"""What timm and torch raise for arguments, or images, that a network does not take."""
