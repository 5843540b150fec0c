"""Any network of timm, cut after a stage, before a plain transformer (the hybrids of Dosovitskiy et al.,
arXiv:2010.11929).

A stage is a feature level, counted as timm counts them (`feature_info`, `out_indices`): of a ResNet, 0 is the stem and
1 to 4 are its stages; of a ConvNeXt, 0 to 3 are its stages. Everything behind it is left out. A 1 x 1 convolution
brings the map to the width of the transformer, to which each position is a token.

The map has 2 x 2 to 64 x 64 positions. The least keeps batch normalisation from maps of one position, too. Where two
networks are the same up to a stage, as stems of ResNets are, the first of them alone may be cut there.

This module knows the networks of `KNOWN`; a `Backbone` may be given others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spaces import convnext, resnet
from spaces.costs import Analysis, Cost, patches, total
from spaces.dims import Choice, Condition, Domain, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task
from spaces.vit import MAX_GRID, encoder_args, encoder_cost, encoder_limits, task_args

MODEL = "paretovit_backbone_vit"
MIN_GRID = 2


@dataclass(frozen=True)
class Cut:
    """A network as far as a stage, for images of one size.

    side, channels: of its map, which is square. cost: of everything up to there, its own attention among the FLOPs but
    not among the blocks. network: equal for cuts that are the same network, whatever the name.
    """

    side: int
    channels: int
    cost: Cost
    network: Hashable


@dataclass(frozen=True)
class Features:
    """What has to be known of a timm model to cut it.

    num_stages: how many there are, from 0 on. cut: (stage, side of the image in pixels, its channels) -> the network up
    to there, or why it cannot be.
    """

    num_stages: int
    cut: Callable[[int, int, int], Cut | str]


def _resnet(own: resnet.Published, stage: int, image_size: int, in_chans: int) -> Cut:
    side, channels, cost = resnet.cut(own, stage, image_size, in_chans)
    is_stem = stage == 0
    kind = ("resnet", own.tiered, own.bottleneck and not is_stem, own.layers[:stage])
    return Cut(side, channels, cost, kind)


def _convnext(width: int, stage: int, image_size: int, in_chans: int) -> Cut:
    side, channels, cost = convnext.cut(width, stage + 1, image_size, in_chans)
    return Cut(side, channels, cost, ("convnext", width, stage))


KNOWN: Mapping[str, Features] = {
    **{name: Features(1 + len(own.layers), partial(_resnet, own)) for name, own in resnet.PUBLISHED.items()},
    **{
        name: Features(len(convnext.DEPTHS), partial(_convnext, width))
        for name, width in convnext.WIDTHS.items()
    },
}
"""Networks whose cost is known in closed form, by timm's name."""


def has(args: Mapping[str, Any], image_size: int) -> bool:
    """Whether a network of `KNOWN`, which the arguments of the entry point name, has the stage and leaves something of
    the image by it."""
    features = KNOWN[args["backbone"]]
    return args["stage"] < features.num_stages and _cut(features, args, image_size).side > 0


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of the entry point with a network of `KNOWN`."""
    return _analyse(KNOWN[args["backbone"]], args, image_size)


def _cut(features: Features, args: Mapping[str, Any], image_size: int) -> Cut:
    found = features.cut(args["stage"], image_size, args["in_chans"])
    assert isinstance(found, Cut), found
    return found


def _analyse(features: Features, args: Mapping[str, Any], image_size: int) -> Analysis:
    before = _cut(features, args, image_size)
    projection = patches(before.side, 1, before.channels, args["embed_dim"])
    encoder, tokens = encoder_cost(args, before.side**2)
    return total(before.cost + projection + encoder, tokens)


class Backbone:
    """backbone (timm's name), stage, then the transformer's depth, heads, head_width, mlp_ratio, pooling.

    networks: the names that there are, and what is known of them.
    """

    name = "backbone"
    conditions: Mapping[str, Condition] = {}
    named: Mapping[str, Mapping[str, Value]] = {}

    def __init__(self, networks: Mapping[str, Features] = KNOWN) -> None:
        self.networks = networks

    def limits(self, task: Task) -> dict[str, Domain]:
        stages = max(features.num_stages for features in self.networks.values())
        return {
            "backbone": Choice(tuple(self.networks)),
            "stage": IntRange(0, stages - 1),
            **encoder_limits(),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        def can_be_cut(values: Mapping[str, Any]) -> str | None:
            return self._why_not(task, values["backbone"], values["stage"])

        return (Rule(("backbone", "stage"), can_be_cut),)

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        place = {"backbone": values["backbone"], "stage": values["stage"]}
        return ArchSpec(MODEL, {**place, **encoder_args(values), **task_args(task)}, task.image_size)

    def analyse(self, spec: ArchSpec) -> Analysis:
        """What is known of a network of this family without building it."""
        return _analyse(self.networks[spec.args["backbone"]], spec.args, spec.image_size)

    def _why_not(self, task: Task, name: str, stage: int) -> str | None:
        """Why a network cannot be cut after a stage for these images, or None where it can."""
        features = self.networks[name]
        if stage >= features.num_stages:
            return f"{name} has no stage {stage}; it has 0 to {features.num_stages - 1}"
        found = features.cut(stage, task.image_size, task.channels)
        if isinstance(found, str):
            return f"{name} cannot be cut after stage {stage}: {found}"
        if not MIN_GRID <= found.side <= MAX_GRID:
            return (
                f"{name} makes {found.side} x {found.side} tokens of {task.image_size} px images by stage {stage}, "
                f"not {MIN_GRID} x {MIN_GRID} to {MAX_GRID} x {MAX_GRID}"
            )
        return self._twin(task, name, stage, found)

    def _twin(self, task: Task, name: str, stage: int, found: Cut) -> str | None:
        """That an earlier stage of the network, or a network named before it, is the same there, or None."""
        earlier = [(name, before) for before in range(stage)]
        for other, features in self.networks.items():
            if other == name:
                break
            if stage < features.num_stages:
                earlier.append((other, stage))
        for other, at in earlier:
            same = self.networks[other].cut(at, task.image_size, task.channels)
            if isinstance(same, Cut) and same.network == found.network:
                return f"{name} up to stage {stage} is the same network as {other} up to stage {at}"
        return None
