"""Building networks and counting what they really do."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from spaces import models
from spaces.spec import ArchSpec

torch.set_num_threads(1)


class Counter(TorchDispatchMode):
    """Counts, for matrix multiplications and convolutions, the FLOPs by torch's own formulas and the elements that
    they put out. Faster than FlopCounterMode, which also keeps the books by module."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **(kwargs or {}), out_val=out)
            self.elements += out.numel()
        return out


@dataclass(frozen=True)
class Counted:
    """What a built network has and did for one image; shapes: of all parameters, by name."""

    params: int
    flops: int
    activations: int
    output: tuple[int, ...]
    finite: bool
    shapes: tuple[tuple[str, tuple[int, ...]], ...]


def count_built(spec: ArchSpec, device: str = "cpu") -> Counted:
    """Builds the network and runs one image through it. Attention runs as plain matrix products, which the
    counters see."""
    where = nullcontext() if device == "cpu" else torch.device(device)
    model = (models.build(spec) if device == "cpu" else models.build_shapes(spec)).eval()
    with where, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        image = torch.ones(1, spec.args["in_chans"], spec.image_size, spec.image_size)
        with Counter() as counter:
            result = model(image)
    shapes = tuple((name, tuple(value.shape)) for name, value in model.named_parameters())
    return Counted(
        params=sum(math.prod(shape) for _, shape in shapes),
        flops=counter.flops,
        activations=counter.elements,
        output=tuple(result.shape),
        finite=device == "meta" or bool(torch.isfinite(result).all()),
        shapes=shapes,
    )


@pytest.fixture(name="count_built")
def _count_built() -> Callable[..., Counted]:
    return count_built


@pytest.fixture(name="filled")
def _filled() -> Callable[[ArchSpec], torch.nn.Module]:
    """Builds a network with random weights of one scale, equal for tensors of the same size."""

    def filled(spec: ArchSpec) -> torch.nn.Module:
        model = models.build(spec).eval()
        with torch.no_grad():
            for value in model.parameters():
                value.normal_(0, 0.2, generator=torch.Generator().manual_seed(value.numel()))
        return model

    return filled
