"""The checks that `validate` and `run` share: what can be known to be wrong before anything is written."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from search import deadline
from search.config import SearchConfig, sections
from search.errors import UsageError
from search.plan import Plan, make_plan
from spaces import registry
from spaces.dims import SpaceError
from spaces.spec import ArchSpec
from workers import device
from workers.data.listing import DataError
from workers.data.summary import DataSummary, summarise
from workers.errors import DeviceError

_BUILD_ERRORS = (ValueError, TypeError, RuntimeError, AssertionError)
_KEY = re.compile(r"((?:[a-z_]\w*)(?:\.[\w-]+)*): (.*)", re.DOTALL)


@dataclass(frozen=True)
class Checked:
    """A config that can run. deadline: UTC seconds since the epoch, or None."""

    plan: Plan
    deadline: float | None


@dataclass(frozen=True)
class DryBuild:
    """Candidates built on the meta device. params: of each, in the order of drawing."""

    specs: tuple[ArchSpec, ...]
    params: tuple[int, ...]


def check(config: SearchConfig, now: float) -> Checked:
    """Checks deadline, device, artifacts folder, images and space, cheap ones first. Nothing is written.

    now: UTC seconds since the epoch. Raises UsageError naming file, line, key, value and remedy.
    """
    ends = _deadline(config, now)
    _check_artifacts(config)
    _check_device(config)
    data = look_at(config)
    try:
        plan = make_plan(config, data)
    except SpaceError as error:
        raise _located(config, "space", error, inside=("preset", "families", *registry.FAMILIES)) from None
    for constraint in plan.constraints:
        if (
            constraint.name == "flops"
            and constraint.baseline
            and not plan.baseline_analysis[constraint.baseline]
        ):
            known = "the FLOPs of a timm model are not known; give a number"
            raise config.error("constraints.flops", f"{constraint.baseline!r}: {known}")
    if config.baselines:
        for name, spec in plan.baselines.items():
            _run_on_meta(config, f"baselines.{name}", spec)
    return Checked(plan, ends)


def dry_build(plan: Plan, count: int) -> DryBuild:
    """Builds up to `count` different candidates and every baseline on the meta device.

    Raises UsageError when one does not build.
    """
    rng = random.Random(plan.config.search.seed)
    drawn = {spec.digest: spec for spec in (plan.space.spec(plan.space.sample(rng)) for _ in range(count))}
    params = [_count(plan.config, "space", spec) for spec in drawn.values()]
    for name, spec in plan.baselines.items():
        _count(plan.config, f"baselines.{name}", spec)
    return DryBuild(tuple(drawn.values()), tuple(params))


def _deadline(config: SearchConfig, now: float) -> float | None:
    if config.search.deadline is None:
        return None
    try:
        return deadline.resolve(config.search.deadline, now)
    except ValueError as error:
        raise config.error("search.deadline", str(error)) from None


def _check_artifacts(config: SearchConfig) -> None:
    if config.artifacts is not None and (problem := unwritable(Path(config.artifacts))):
        raise config.error("artifacts", problem)


def unwritable(folder: Path) -> str | None:
    """Why a folder cannot be made or written in, or None. Looks at the nearest one that exists."""
    for place in (folder, *folder.parents):
        if place.is_dir():
            if os.access(place, os.W_OK | os.X_OK):
                return None
            return f"{place} is not writable; choose another folder or change its permissions"
        if place.exists() or place.is_symlink():
            return f"{place} is not a folder; choose another path"
    return f"{folder} is not below any folder"


def _check_device(config: SearchConfig) -> None:
    try:
        device.check(config.cost.device)
    except DeviceError as error:
        raise config.error("cost.device", str(error)) from None


def look_at(config: SearchConfig) -> DataSummary:
    """What the images are. Raises UsageError when they cannot be used."""
    try:
        return summarise(config.data)
    except DataError as error:
        raise _located(config, "data", error, inside=()) from None


def _located(config: SearchConfig, section: str, error: ValueError, inside: Collection[str]) -> UsageError:
    """Where the message begins with a key, that key's line; else the section's.

    inside: words that a message may begin with for a key inside the section (`vit.depth: ...`).
    """
    text = str(error)
    if found := _KEY.fullmatch(text):
        head = found[1].split(".")[0]
        if head in sections()[""]:
            return config.error(found[1], found[2])
        if head in inside:
            return config.error(f"{section}.{found[1]}", found[2])
    return config.error(section, text)


def _count(config: SearchConfig, key: str, spec: ArchSpec) -> int:
    from spaces import models
    from workers.plugins import load_plugins

    load_plugins()
    try:
        return models.count(spec)
    except _BUILD_ERRORS as error:
        raise config.error(key, f"{_shown(spec)} does not build: {_reason(error)}") from None


def _run_on_meta(config: SearchConfig, key: str, spec: ArchSpec) -> None:
    """Builds a model and feeds it one image of the search's size, without memory for either."""
    import torch

    from spaces import models

    _count(config, key, spec)
    size = spec.image_size
    try:
        with torch.device("meta"), torch.no_grad():
            models.build(spec).eval()(torch.zeros(1, spec.args["in_chans"], size, size))
    except _BUILD_ERRORS as error:
        hint = f"; give args: {{img_size: {size}}} where the model takes it"
        text = f"{_shown(spec)} does not run on {size} px images: {_reason(error)}{hint}"
        raise config.error(key, text) from None


def _shown(spec: ArchSpec) -> str:
    return f"{spec.model} with {dict(spec.args)}"


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
