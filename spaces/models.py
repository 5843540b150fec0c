"""ArchSpec -> network, through timm; registers our own entry points with timm."""

from __future__ import annotations

import timm
import torch
from timm.models import register_model
from torch import nn

from spaces.entry_points import ENTRY_POINTS
from spaces.spec import ArchSpec

for _entry_point in ENTRY_POINTS:
    register_model(_entry_point)


def build(spec: ArchSpec, stochastic_depth: float | None = None) -> nn.Module:
    """The network of a spec with random weights, in training mode; nothing is downloaded.

    stochastic_depth: drop rate of the last block, growing linearly with depth; None is 0. Raises TypeError,
    ValueError, AssertionError or RuntimeError, as timm does, for arguments that do not go together, and TypeError
    for a positive rate where the model has no stochastic depth.
    """
    return _create(spec, stochastic_depth or 0.0)


def count(spec: ArchSpec) -> int:
    """Number of parameters of any timm model, counted without memory for the weights."""
    with torch.device("meta"):
        model = _create(spec, 0.0)
    return sum(parameter.numel() for parameter in model.parameters())


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
