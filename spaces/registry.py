"""Families and presets by name, and the spaces that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Protocol

from spaces.autoformer import AutoFormer
from spaces.backbone import Backbone
from spaces.coatnet import CoAtNet
from spaces.deit import DeiT
from spaces.dims import Choice, Domain, Family, Grid, SpaceError, parse_override
from spaces.hybrid import Hybrid
from spaces.pit import PiT
from spaces.points import FamilySpace
from spaces.presets import AUTOFORMER_BASE, AUTOFORMER_SMALL, AUTOFORMER_TINY, BASE, SMALL, TINY, Preset
from spaces.sized import IMAGE_SIZE, LEGAL_SIZES, MAX_SIZES, Sized
from spaces.space import Space
from spaces.spec import Task
from spaces.swin import Swin
from spaces.swinv2 import SwinV2
from spaces.vit import ViT
from spaces.windowed import Windowed
from spaces.zoo import Zoo

__all__ = [
    "FAMILIES",
    "PRESETS",
    "Space",
    "SpaceError",
    "image_sizes",
    "make_space",
    "named_space",
    "preset_for",
    "published_size",
]

Ranges = Mapping[str, Domain | Grid]


class Ranged(Family, Protocol):
    """A family that says itself what is searched where nothing is said."""

    def ranges(self, task: Task) -> Ranges | None:
        """By dimension; None for all that is legal."""
        ...


_ZOO = Zoo()
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        ViT(),
        DeiT(),
        AutoFormer(),
        Windowed(),
        Swin(),
        SwinV2(),
        PiT(),
        CoAtNet(),
        Hybrid(),
        Backbone(),
        _ZOO,
    )
}
PRESETS: dict[str, Preset] = {
    "tiny": TINY,
    "small": SMALL,
    "base": BASE,
    "autoformer-tiny": AUTOFORMER_TINY,
    "autoformer-small": AUTOFORMER_SMALL,
    "autoformer-base": AUTOFORMER_BASE,
}


def preset_for(image_size: int) -> str:
    """The preset for images of this side in pixels: `tiny` up to 48, `small` up to 144, `base` above."""
    return "tiny" if image_size <= 48 else "small" if image_size <= 144 else "base"


def image_sizes(raw: object, key: str = IMAGE_SIZE) -> list[int]:
    """Sides in pixels, from one, a list, or low, high and step. Raises SpaceError naming the key."""
    found = parse_override(key, raw, LEGAL_SIZES).values
    if len(found) > MAX_SIZES:
        raise SpaceError(f"{key}: {len(found)} sizes; at most {MAX_SIZES}: give a list, or a larger step")
    return [int(size) for size in found]


def make_space(
    task: Task,
    preset: str | None = None,
    families: Sequence[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    informed: Sequence[Family] = (),
    own: Mapping[str, Ranged] | None = None,
) -> Space:
    """The space of a task.

    preset: None chooses by image size. families: None takes every family of the preset that has a legal point at
    this image size; `zoo`, and those that the preset has on request, have to be named. overrides: {"vit":
    {"patch_size": [2, 4], "depth": {"low": 2, "high": 6}}}; a list of values, or low, high and step; and {"image_size":
    [28, 32]}, for all families, each of which takes the sizes that it has a legal point at. informed: those to take
    for the families of their names (`zoo`, `backbone`), which know more names of timm. own: further families by
    name, which have to be named too. Raises SpaceError naming the key, the value and what is legal.
    """
    _check_task(task)
    preset = preset_for(task.image_size) if preset is None else preset
    _known("preset", preset, PRESETS)
    known: dict[str, Family] = {**FAMILIES, **{each.name: each for each in informed}, **(own or {})}
    ranges: dict[str, Ranges | None] = {**PRESETS[preset].families, **PRESETS[preset].on_request}
    ranges |= {each.name: each.ranges(task) for each in (_ZOO, *(own or {}).values())}
    chosen = _chosen(families, PRESETS[preset], ranges)
    named = {key: value for key, value in (overrides or {}).items() if key != IMAGE_SIZE}
    for name in named:
        _known("space", name, known)
        if name not in chosen:
            searched = f"only {', '.join(chosen)} {'is' if len(chosen) == 1 else 'are'} searched"
            wanted = f"[{', '.join([*chosen, name])}]"
            raise SpaceError(f"{name}: its dimensions are set, but {searched}; give space.families: {wanted}")
    sizes = image_sizes(overrides[IMAGE_SIZE]) if overrides and IMAGE_SIZE in overrides else []
    makers = {name: partial(_member, task, known[name], ranges[name], named.get(name, {})) for name in chosen}
    required = chosen if families is not None else list(named)
    return Space(task, _members(makers, sizes, required))


def _chosen(families: Sequence[str] | None, preset: Preset, ranges: Mapping[str, Ranges | None]) -> list[str]:
    if isinstance(families, str):
        raise SpaceError(f"families: {families!r} is not a list; legal: {', '.join(ranges)}")
    chosen = list(preset.families) if families is None else list(families)
    if not chosen:
        raise SpaceError(f"families: none named; legal: {', '.join(ranges)}")
    for name in chosen:
        _known("families", name, ranges)
    if len(set(chosen)) < len(chosen):
        raise SpaceError(f"families: {', '.join(chosen)} names a family twice")
    return chosen


def named_space(name: str, task: Task | None = None) -> Space:
    """The space of one point: a network of the field that our families cover, at its own image size, 3 channels and
    1,000 classes or for another task. Raises SpaceError for any other name."""
    task = Task(published_size(name), 3, 1000) if task is None else task
    _check_task(task)
    family = _home(name)
    values = {key: [value] for key, value in family.named[name].items() if key != IMAGE_SIZE}
    return Space(task, {family.name: _member(task, family, {}, values)})


def published_size(name: str) -> int:
    """Side in pixels of the images that a network of the field was published for. Raises SpaceError for a name that
    no family knows."""
    return int(_home(name).named[name].get(IMAGE_SIZE, 224))


def _home(name: str) -> Family:
    homes = {known: family for family in FAMILIES.values() for known in family.named}
    _known("named", name, homes)
    return homes[name]


def _members(
    makers: Mapping[str, Callable[[Sequence[int]], FamilySpace]],
    sizes: Sequence[int],
    required: Sequence[str],
) -> dict[str, FamilySpace]:
    """makers: family -> its space for some image sizes. required: families whose own errors are not passed over."""
    members, reasons = {}, []
    for name, make in makers.items():
        try:
            members[name] = make(sizes)
        except SpaceError as error:
            if name in required:
                raise
            reasons.append(str(error))
    if not members:
        raise SpaceError(reasons[0])
    found = {
        size
        for member in members.values()
        for own in member.dimensions
        if own.name == IMAGE_SIZE
        for size in own.domain.values
    }
    for size in sizes:
        if size not in found:
            raise SpaceError(f"{IMAGE_SIZE}: {size} is not legal in any family: {_why_not(makers, size)}")
    return members


def _why_not(makers: Mapping[str, Callable[[Sequence[int]], FamilySpace]], size: int) -> str:
    for make in makers.values():
        try:
            make([size])
        except SpaceError as error:
            return str(error)
    return "their dimensions set other sizes"


def _member(
    task: Task,
    family: Family,
    ranges: Ranges | None,
    overrides: Mapping[str, Any],
    sizes: Sequence[int] = (),
) -> FamilySpace:
    """ranges: what is searched where nothing is said; None for all that is legal. sizes: image sizes of which those
    are taken that have a legal point; none: that of the task."""
    if not isinstance(overrides, Mapping):
        raise SpaceError(f"{family.name}: {overrides!r} is not a mapping of dimensions to values")
    limits = {IMAGE_SIZE: LEGAL_SIZES, **family.limits(task)}
    for key in overrides:
        _known(family.name, key, limits)
    made = family if IMAGE_SIZE in family.limits(task) else _sized(family, ranges or {}, overrides, sizes)
    domains: dict[str, Domain] = {}
    for key, legal in made.limits(task).items():
        if key in overrides:
            domains[key] = parse_override(f"{family.name}.{key}", overrides[key], legal)
        elif key == IMAGE_SIZE and sizes:
            domains[key] = Choice(tuple(sizes))
        elif ranges is None:
            domains[key] = legal
        elif key in ranges:
            domains[key] = _preset_domain(task, made, key, legal, ranges[key])
    apart = frozenset({IMAGE_SIZE} if isinstance(made, Sized) else ())
    return FamilySpace(made, task, domains, frozenset(overrides), apart)


def _preset_domain(task: Task, family: Family, key: str, legal: Domain, given: Domain | Grid) -> Domain:
    if not isinstance(given, Grid):
        return given
    if not isinstance(family, Sized):
        return _patches(task, family, key, given)
    return (
        legal
        if legal.values
        else _patches(replace(task, image_size=family.sizes[0]), family.family, key, given)
    )


def _sized(
    family: Family,
    ranges: Mapping[str, Domain | Grid],
    overrides: Mapping[str, Any],
    sizes: Sequence[int],
) -> Family:
    """The family with a dimension for the image size, where there are sizes; else as it is."""
    if IMAGE_SIZE in overrides:
        sizes = image_sizes(overrides[IMAGE_SIZE], f"{family.name}.{IMAGE_SIZE}")
    if not sizes:
        return family
    grids = {key: own for key, own in ranges.items() if isinstance(own, Grid) and key not in overrides}
    return Sized(family, sizes, grids)


def _patches(task: Task, family: Family, key: str, grid: Grid) -> Choice:
    """The domain of a preset's patch sizes. Raises SpaceError naming image sizes that have one when this has none."""

    def at(image_size: int) -> Choice:
        return grid.of(family.limits(replace(task, image_size=image_size))[key], image_size)

    found = at(task.image_size)
    if not found.values:
        sizes = range(4, task.image_size + 64)
        near = sorted(
            sorted((size for size in sizes if at(size).values), key=lambda s: abs(s - task.image_size))[:2]
        )
        works = " and ".join(str(size) for size in near) or f"none below {sizes.stop}"
        raise SpaceError(
            f"{family.name}.{key}: none cuts {task.image_size} px images into {grid.low} to {grid.high} patches a "
            f"side; nearest image sizes that work: {works}"
        )
    return found


def _known(where: str, name: object, known: Mapping[str, Any]) -> None:
    if isinstance(name, str) and name in known:
        return
    close = get_close_matches(str(name), known, 1, cutoff=0.5)
    hint = f"nearest: {close[0]}; " if close else ""
    raise SpaceError(f"{where}: unknown name {name!r}; {hint}legal: {', '.join(known)}")


def _check_task(task: Task) -> None:
    for name, value, low in (
        ("image_size", task.image_size, 4),
        ("channels", task.channels, 1),
        ("num_classes", task.num_classes, 2),
    ):
        if type(value) is not int or value < low:
            raise SpaceError(f"{name}: {value!r} is not a whole number from {low}")
