"""Pretrained networks of timm, each at an image size of its own and, where that is possible, with fewer blocks.

A point names pretrained weights as timm does (`deit_tiny_patch16_224.fb_in1k`). Of a plain ViT or DeiT the first
`blocks` blocks stay, for which the weights still fit; every other network is used whole, since blocks taken out of
the middle of stages would leave layers that have never seen such input. An image size is legal where patches divide
it (timm would drop the remaining pixels in silence), where windows do not pad it too much, and where something is left
of it after the last stage.

This module knows the networks behind `WELL_KNOWN`; a `Zoo` may be given others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spaces import resnet, swin, vit
from spaces.dims import Choice, Condition, Domain, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task

SMALLEST_STAGED = 32
"""Side in pixels below which nothing is left after the stages of a convolutional network, which reduce by 32."""

SMALLEST_USUAL = 64
"""Side in pixels below which features that were learnt at 224 px see too little: the least that is proposed."""


@dataclass(frozen=True)
class Pretrained:
    """What has to be known of a timm model to cut and feed it.

    depth: number of its blocks, where any first ones may be kept; None where it is used whole.
    takes_size: whether it is built for one image size (timm's argument `img_size`).
    refuses: image side in pixels -> why it cannot be, or None.
    """

    depth: int | None
    takes_size: bool
    refuses: Callable[[int], str | None]


def architecture(name: str) -> str:
    """timm's entry point for the weights `name`: what is before the first dot."""
    return name.partition(".")[0]


def known(arch: str) -> Pretrained | None:
    """What this module knows of an entry point of timm; None where that has to be found out by building it."""
    if arch in vit.NAMED:
        values = vit.NAMED[arch]
        return Pretrained(int(values["depth"]), True, _cuts(int(values["patch_size"])))
    if arch in swin.NAMED:
        return Pretrained(None, True, _windows(swin.NAMED[arch]))
    if arch in resnet.PUBLISHED or arch in _CONVOLUTIONAL:
        return Pretrained(None, False, _stages)
    return None


def _cuts(patch: int) -> Callable[[int], str | None]:
    def refuses(image_size: int) -> str | None:
        if image_size % patch:
            return f"patches of {patch} px do not divide {image_size} px"
        return None if image_size // patch >= 2 else f"{image_size} px is one patch of {patch} px"

    return refuses


def _windows(values: Mapping[str, Value]) -> Callable[[int], str | None]:
    cuts = _cuts(int(values["patch_size"]))

    def refuses(image_size: int) -> str | None:
        if reason := cuts(image_size):
            return reason
        whole = {**swin.FIXED, **values}
        checks = (rule.check(whole) for rule in swin.Swin().rules(Task(image_size, 3, 2)))
        return next((f"at {image_size} px, {reason}" for reason in checks if reason is not None), None)

    return refuses


def _stages(image_size: int) -> str | None:
    if image_size >= SMALLEST_STAGED:
        return None
    return f"{image_size} px is less than the {SMALLEST_STAGED} px that its stages reduce to one"


_CONVOLUTIONAL = ("convnext_atto", "efficientnet_b0", "mobilenetv3_small_100")

DEFAULT_MODELS = (
    "deit_tiny_patch16_224.fb_in1k",
    "deit_small_patch16_224.fb_in1k",
    "resnet18.a1_in1k",
    "resnet34.a1_in1k",
)
"""What is searched where no names are given: small networks that are fast to fine-tune."""

_NAMES = (
    *DEFAULT_MODELS,
    "deit_base_patch16_224.fb_in1k",
    "vit_tiny_patch16_224.augreg_in21k_ft_in1k",
    "vit_small_patch16_224.augreg_in21k_ft_in1k",
    "vit_small_patch32_224.augreg_in21k_ft_in1k",
    "vit_base_patch16_224.augreg_in21k_ft_in1k",
    "vit_base_patch32_224.augreg_in21k_ft_in1k",
    "swin_tiny_patch4_window7_224.ms_in1k",
    "swin_small_patch4_window7_224.ms_in1k",
    "swin_base_patch4_window7_224.ms_in1k",
    "resnet50.a1_in1k",
    "convnext_atto.d2_in1k",
    "efficientnet_b0.ra_in1k",
    "mobilenetv3_small_100.lamb_in1k",
)


def _well_known() -> dict[str, Pretrained]:
    found = {name: known(architecture(name)) for name in _NAMES}
    return {name: model for name, model in found.items() if model is not None}


WELL_KNOWN: Mapping[str, Pretrained] = _well_known()
"""Weights that timm offers, and what is known of their networks."""


def usual_image_sizes(image_size: int) -> tuple[int, ...]:
    """Sides in pixels that are searched for images of `image_size`: multiples of 32 about a half, three quarters, all
    and, up to 224 px, one and a half times of it, none below 64."""
    base = max(image_size, SMALLEST_USUAL)
    shares = (0.5, 0.75, 1.0) if base >= 224 else (0.5, 0.75, 1.0, 1.5)
    return tuple(sorted({max(SMALLEST_USUAL, int(base * share / 32 + 0.5) * 32) for share in shares}))


class Zoo:
    """model (the name of pretrained weights), image_size, blocks (of a plain transformer).

    models: the names that there are, and what is known of them.
    """

    name = "zoo"
    named: Mapping[str, Mapping[str, Value]] = {}

    def __init__(self, models: Mapping[str, Pretrained] = WELL_KNOWN) -> None:
        self.models = models
        cut = tuple(name for name, model in models.items() if model.depth is not None)
        self.conditions: Mapping[str, Condition] = {"blocks": ("model", cut)}

    def ranges(self, task: Task) -> Mapping[str, Domain]:
        """What is searched where nothing is said."""
        return {
            "model": Choice(DEFAULT_MODELS),
            "image_size": Choice(usual_image_sizes(task.image_size)),
            "blocks": Choice((3, 6, 9, 12, 18, 24)),
        }

    def limits(self, task: Task) -> dict[str, Domain]:
        return {
            "model": Choice(tuple(self.models)),
            "image_size": IntRange(16, 1024),
            "blocks": IntRange(1, 64),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        def image_fits(values: Mapping[str, Any]) -> str | None:
            reason = self.models[values["model"]].refuses(values["image_size"])
            return None if reason is None else f"{values['model']}: {reason}"

        def has_blocks(values: Mapping[str, Any]) -> str | None:
            depth = self.models[values["model"]].depth
            if depth is None or values["blocks"] <= depth:
                return None
            return f"{values['model']} has {depth} blocks, not {values['blocks']}"

        return (Rule(("model", "image_size"), image_fits), Rule(("model", "blocks"), has_blocks))

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        name, image_size = values["model"], values["image_size"]
        args: dict[str, Any] = {"in_chans": task.channels, "num_classes": task.num_classes}
        if self.models[name].takes_size:
            args["img_size"] = image_size
        if "blocks" in values:
            args["depth"] = values["blocks"]
        return ArchSpec(architecture(name), args, image_size, weights=name)

    def whole(self, task: Task, name: str, image_size: int) -> ArchSpec:
        """The network with all its blocks."""
        depth = self.models[name].depth
        blocks = {} if depth is None else {"blocks": depth}
        return self.spec(task, {"model": name, "image_size": image_size, **blocks})
