"""A family of one's own: mixers, which look around with depthwise convolutions where transformers attend.

    PYTHONPATH=examples paretovit --plugin own_family validate examples/own-family.yaml
    PYTHONPATH=examples paretovit --plugin own_family run examples/own-family.yaml

docs/own-family.md says what a family has to have, and what is checked of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timm.layers.drop import DropPath
from timm.models import register_model
from torch import Tensor, nn

from spaces.costs import Analysis, convolution, linear, norm, patches, total
from spaces.dims import Choice, Domain, Grid, IntRange, Rule
from spaces.spec import ArchSpec, Task


class Block(nn.Module):
    """A depthwise convolution, then two dense layers on every position; gated, half of the first scales the other."""

    def __init__(self, width: int, kernel: int, mlp_ratio: int, gated: bool, drop_path: float) -> None:
        super().__init__()
        hidden = width * mlp_ratio
        self.norm = nn.GroupNorm(1, width)
        self.around = nn.Conv2d(width, width, kernel, padding="same", groups=width)
        self.expand = nn.Conv2d(width, hidden * (2 if gated else 1), 1)
        self.gate = nn.GLU(dim=1) if gated else nn.GELU()
        self.reduce = nn.Conv2d(hidden, width, 1)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.expand(self.around(self.norm(x)))
        return x + self.drop_path(self.reduce(self.gate(mixed)))


@register_model
def own_mixer(
    pretrained: bool = False,
    *,
    patch_size: int,
    width: int,
    depth: int,
    kernel: int,
    mlp_ratio: int,
    gated: bool,
    in_chans: int = 3,
    num_classes: int = 1000,
    drop_path_rate: float = 0.0,
    **_of_timm: Any,
) -> nn.Module:
    """_of_timm: where timm would look for pretrained weights, of which there are none."""
    assert not pretrained
    rates = [drop_path_rate * index / max(1, depth - 1) for index in range(depth)]
    network = nn.Sequential(
        nn.Conv2d(in_chans, width, patch_size, stride=patch_size),
        *(Block(width, kernel, mlp_ratio, gated, rate) for rate in rates),
        nn.GroupNorm(1, width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, num_classes),
    )
    for part in network.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight)
    return network


class Mixer:
    """patch_size, width, depth, kernel, mlp_ratio, gated."""

    name = "mixer"
    conditions: Mapping[str, tuple[str, tuple[Any, ...]]] = {}
    named: Mapping[str, Mapping[str, Any]] = {}

    def limits(self, task: Task) -> dict[str, Domain]:
        sides = range(1, task.image_size // 2 + 1)
        return {
            "patch_size": Choice(tuple(side for side in sides if task.image_size % side == 0)),
            "width": IntRange(8, 512, 8),
            "depth": IntRange(1, 32),
            "kernel": Choice((3, 5, 7, 9)),
            "mlp_ratio": IntRange(1, 4),
            "gated": Choice((False, True)),
        }

    def ranges(self, task: Task) -> dict[str, Domain | Grid]:
        narrowed = {"patch_size": Grid(4, 16), "width": IntRange(16, 64, 16), "depth": IntRange(1, 6)}
        return {**self.limits(task), **narrowed}

    def rules(self, task: Task) -> list[Rule]:
        def fits(values: Mapping[str, Any]) -> str | None:
            grid = task.image_size // values["patch_size"]
            if values["kernel"] < 2 * grid:
                return None
            return f"kernel {values['kernel']} reaches beyond {grid} x {grid} patches wherever it is"

        return [Rule(("patch_size", "kernel"), fits)]

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        head = {"in_chans": task.channels, "num_classes": task.num_classes}
        return ArchSpec("own_mixer", {**values, **head}, task.image_size)

    def analyse(self, spec: ArchSpec) -> Analysis:
        args = spec.args
        width, hidden, kernel = args["width"], args["width"] * args["mlp_ratio"], args["kernel"]
        grid = spec.image_size // args["patch_size"]
        around = convolution(grid, kernel, 1, width, bias=True)
        expand = convolution(grid, 1, width, hidden * (2 if args["gated"] else 1), bias=True)
        block = norm(width) + around + expand + convolution(grid, 1, hidden, width, bias=True)
        ends = patches(grid, args["patch_size"], args["in_chans"], width) + norm(width)
        return total(ends + block * args["depth"] + linear(1, width, args["num_classes"]), tokens=0)
