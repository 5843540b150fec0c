"""Families and presets by name, and the spaces that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from spaces.autoformer import AutoFormer
from spaces.deit import DeiT
from spaces.dims import Choice, Domain, Family, Grid, SpaceError, parse_override
from spaces.hybrid import Hybrid
from spaces.pit import PiT
from spaces.points import FamilySpace
from spaces.presets import AUTOFORMER_BASE, AUTOFORMER_SMALL, AUTOFORMER_TINY, SMALL, TINY, Preset
from spaces.space import Space
from spaces.spec import Task
from spaces.swin import Swin
from spaces.vit import ViT
from spaces.windowed import Windowed
from spaces.zoo import Zoo

__all__ = ["FAMILIES", "PRESETS", "Space", "SpaceError", "make_space", "named_space", "preset_for"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (ViT(), DeiT(), AutoFormer(), Windowed(), Swin(), PiT(), Hybrid(), Zoo())
}
PRESETS: dict[str, Preset] = {
    "tiny": TINY,
    "small": SMALL,
    "autoformer-tiny": AUTOFORMER_TINY,
    "autoformer-small": AUTOFORMER_SMALL,
    "autoformer-base": AUTOFORMER_BASE,
}

Overrides = Mapping[str, Mapping[str, Any]]


def preset_for(image_size: int) -> str:
    """The preset for images of this side in pixels: `tiny` up to 48, `small` above."""
    return "tiny" if image_size <= 48 else "small"


def make_space(
    task: Task,
    preset: str | None = None,
    families: Sequence[str] | None = None,
    overrides: Overrides | None = None,
    zoo: Zoo | None = None,
) -> Space:
    """The space of a task.

    preset: None chooses by image size. families: None takes every family of the preset that has a legal point at
    this image size; `zoo`, and those that the preset has on request, have to be named. overrides: {"vit":
    {"patch_size": [2, 4], "depth": {"low": 2, "high": 6}}}; a list of values, or low, high and step. zoo: the one to
    take for the family of that name; None knows the well-known names alone. Raises SpaceError naming the key, the
    value and what is legal.
    """
    _check_task(task)
    preset = preset_for(task.image_size) if preset is None else preset
    _known("preset", preset, PRESETS)
    zoo = Zoo() if zoo is None else zoo
    ranges = {**PRESETS[preset].families, **PRESETS[preset].on_request, zoo.name: zoo.ranges(task)}
    if isinstance(families, str):
        raise SpaceError(f"families: {families!r} is not a list; legal: {', '.join(ranges)}")
    chosen = list(PRESETS[preset].families) if families is None else list(families)
    if not chosen:
        raise SpaceError(f"families: none named; legal: {', '.join(ranges)}")
    for name in chosen:
        _known("families", name, ranges)
    if len(set(chosen)) < len(chosen):
        raise SpaceError(f"families: {', '.join(chosen)} names a family twice")
    overrides = overrides or {}
    for name in overrides:
        _known("space", name, FAMILIES)
        if name not in chosen:
            remedy = (
                f"names only {', '.join(chosen)}" if families else f"does not name it: [{', '.join(ranges)}]"
            )
            raise SpaceError(f"{name}: its dimensions are set, but families {remedy}")
    known = {**FAMILIES, zoo.name: zoo}
    return Space(task, _members(task, known, ranges, chosen, overrides, required=families is not None))


def named_space(name: str, task: Task | None = None) -> Space:
    """The space of one point: a network of the field that our families cover, at its own 224 px, 3 channels and 1,000
    classes or for another task. Raises SpaceError for any other name."""
    task = Task(224, 3, 1000) if task is None else task
    _check_task(task)
    homes = {known: family for family in FAMILIES.values() for known in family.named}
    _known("named", name, homes)
    family = homes[name]
    values = {key: [value] for key, value in family.named[name].items()}
    return Space(task, {family.name: _member(task, family, {}, values)})


def _members(
    task: Task,
    known: Mapping[str, Family],
    ranges: Mapping[str, Mapping[str, Domain | Grid]],
    chosen: Sequence[str],
    overrides: Overrides,
    required: bool,
) -> dict[str, FamilySpace]:
    members, reasons = {}, []
    for name in chosen:
        try:
            members[name] = _member(task, known[name], ranges[name], overrides.get(name, {}))
        except SpaceError as error:
            if required or name in overrides:
                raise
            reasons.append(str(error))
    if not members:
        raise SpaceError(reasons[0])
    return members


def _member(
    task: Task, family: Family, ranges: Mapping[str, Domain | Grid], overrides: Mapping[str, Any]
) -> FamilySpace:
    if not isinstance(overrides, Mapping):
        raise SpaceError(f"{family.name}: {overrides!r} is not a mapping of dimensions to values")
    limits = family.limits(task)
    for key in overrides:
        _known(family.name, key, limits)
    domains: dict[str, Domain] = {}
    for key, legal in limits.items():
        if key in overrides:
            domains[key] = parse_override(f"{family.name}.{key}", overrides[key], legal)
        elif key in ranges:
            given = ranges[key]
            domains[key] = _patches(task, family, key, given) if isinstance(given, Grid) else given
    return FamilySpace(family, task, domains, frozenset(overrides))


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
        raise SpaceError(
            f"{family.name}.{key}: none cuts {task.image_size} px images into {grid.low} to {grid.high} patches a "
            f"side; nearest image sizes that work: {' and '.join(str(size) for size in near)}"
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
