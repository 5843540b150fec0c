"""The checks that `validate` and `run` share: what can be known to be wrong before anything is written."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from search import (
    backbones,
    deadline,
    energy,
    execution_checks,
    idle,
    inheriting,
    local_checks,
    measuring_device,
    named_runtimes,
    own_families,
    pretrained,
    recipes,
    teaching,
)
from search.config import SearchConfig, sections
from search.errors import UsageError
from search.plan import Plan, closed_form, make_plan
from spaces import registry
from spaces.dims import SpaceError
from spaces.spec import ArchSpec
from workers import device
from workers.data import dataset
from workers.data.inspection import Inspection, inspect
from workers.data.listing import DataError
from workers.data.summary import DataSummary, summary_of
from workers.errors import DeviceError
from workers.runtimes import offered
from workers.settings import Precision, Runtime

_DRAWS = 50
_MOST_DECODED = 1024
_KEY = re.compile(r"((?:[a-z_]\w*)(?:\.[\w-]+)*): (.*)", re.DOTALL)


@dataclass(frozen=True)
class Batch:
    """A batch of training images, decoded. seconds: that it took."""

    num_images: int
    seconds: float


@dataclass(frozen=True)
class Checked:
    """A config that can run. deadline: UTC seconds since the epoch, or None.

    Of a new search: batch; advice, a line on how it will train; missing, why it lacks baselines that others get; seen,
    what its images are like.
    """

    plan: Plan
    deadline: float | None
    batch: Batch | None = None
    advice: str | None = None
    missing: str | None = None
    seen: Inspection = field(default_factory=Inspection)

    @property
    def baselines(self) -> str:
        """In a line: those there will be, and why not others."""
        return "; ".join(filter(None, (", ".join(self.plan.baselines) or "none", self.missing)))


@dataclass(frozen=True)
class DryBuild:
    """Candidates built on the meta device. params: of each, in the order of drawing."""

    specs: tuple[ArchSpec, ...]
    params: tuple[int, ...]


def check(config: SearchConfig, now: float) -> Checked:
    """Checks deadline, device, folders, images and space, cheap ones first. Nothing is written, no network asked.

    now: UTC seconds since the epoch. Raises UsageError naming file, line, key, value and remedy.
    """
    ends = _before_images(config, now)
    plan = teaching.with_teacher(_plan(config, summary_of(_list_images(config))), is_new=False)
    _check_quantities(plan)
    return Checked(plan, ends)


def check_new(config: SearchConfig, now: float) -> Checked:
    """The same for a search that is to begin: decodes its images too, looks for the pretrained weights that
    it asks for and tries those that are here, and decides on its recipe and baselines. Its plan's config has them
    spelled out."""
    ends = _before_images(config, now)
    local_checks.check_threads(config)
    idle.check(config)
    idle.check_names(config)
    _check_source(config)
    found = _list_images(config)
    batch = _decode_batch(config, found)
    plan = _plan(recipes.decided(config), summary_of(found))
    _check_heads(plan)
    pretrained.check_reachable(plan)
    plan = teaching.with_teacher(plan)
    teaching.check_weights(plan)
    plan, missing = pretrained.with_defaults(plan)
    pretrained.check_files(plan)
    inheriting.check(plan)
    recipes.check(plan)
    execution_checks.check(plan)
    _check_quantities(plan)
    return Checked(plan, ends, batch, pretrained.advice(plan), missing, _inspect(config, found))


def dry_build(plan: Plan, count: int) -> DryBuild:
    """Builds `count` different candidates, or as many as there are, and every baseline on the meta device.

    Raises UsageError when one does not build.
    """
    rng = random.Random(plan.config.search.seed)
    wanted = min(count, plan.space.size())
    drawn: dict[str, ArchSpec] = {}
    for _ in range(_DRAWS * count):
        spec = plan.space.spec(plan.space.sample(rng))
        drawn[spec.digest] = spec
        if len(drawn) == wanted:
            break
    params = [_count(plan.config, "space", spec) for spec in drawn.values()]
    for name, spec in plan.baselines.items():
        _count(plan.config, f"baselines.{name}", spec)
    return DryBuild(tuple(drawn.values()), tuple(params))


def _before_images(config: SearchConfig, now: float) -> float | None:
    """What can be checked without looking at images; returns the deadline."""
    ends = _deadline(config, now)
    own_families.named(config)
    local_checks.check(config)
    _check_device(config)
    folder = config.training.weights_dir
    if folder is not None and not Path(folder).is_dir():
        raise config.error("training.weights_dir", f"{folder} is not a folder")
    return ends


def _plan(config: SearchConfig, data: DataSummary) -> Plan:
    """The plan, with the user's own families and the config's own baselines tried."""
    own = own_families.named(config)
    try:
        plan = make_plan(config, data, [pretrained.zoo_of(config), backbones.backbone_of(config)], own)
        own_families.try_out(plan)
    except SpaceError as error:
        names = [*registry.FAMILIES, *(family.name for family in own.values())]
        raise _located(config, "space", error, inside=("preset", "families", "image_size", *names)) from error
    pretrained.check_recipe(plan)
    for name in config.baselines or {}:
        _run_on_meta(config, f"baselines.{name}", plan.baselines[name])
    return plan


def _check_quantities(plan: Plan) -> None:
    """Baselines of limits have to be there; FLOPs that are asked for have to be known of everything."""
    config = plan.config
    for constraint in plan.constraints:
        key, name = f"constraints.{constraint.name}", constraint.baseline
        if name is not None and name not in plan.baselines:
            raise config.error(key, f"this search has no baseline {name!r}; {_listed(plan.baselines)}")
        if name and constraint.name == "flops" and not plan.baseline_analysis[name]:
            raise config.error(key, f"{name!r}: the FLOPs of a timm model are not known; give a number")
    asked = [f"constraints.{c.name}" for c in plan.constraints if c.name == "flops"]
    asked += ["objectives" for objective in plan.objectives if objective.name == "flops"]
    if asked and (lacking := own_families.without_flops(plan)):
        text = f"the FLOPs of {lacking[0]} are not known; give its class analyse(spec), or leave flops out of this"
        raise config.error(asked[0], text)
    unknown = [name for name in pretrained.zoo_models(plan.space) if not _has_flops(plan, name)]
    if asked and unknown:
        text = (
            f"the FLOPs of {unknown[0]} are not known; leave it out of space.zoo.model, or flops out of this"
        )
        raise config.error(asked[0], text)


def _has_flops(plan: Plan, name: str) -> bool:
    spec = pretrained.zoo_of(plan.config).whole(plan.space.task, name, plan.data.image_size)
    return bool(closed_form(spec))


def _deadline(config: SearchConfig, now: float) -> float | None:
    if config.search.deadline is None:
        return None
    try:
        return deadline.resolve(config.search.deadline, now)
    except ValueError as error:
        raise config.error("search.deadline", str(error)) from None


def _check_runtime(config: SearchConfig) -> None:
    """What `cost`, the objectives and the constraints want to be measured in."""
    cost = config.cost
    key = "cost.precision" if cost.runtime == "torch" else "cost.runtime"
    _check_offered(config, key, cost.runtime, cost.used_precision)
    keys = dict.fromkeys(config.objectives, "objectives")
    keys |= {name: f"constraints.{name}" for name in config.constraints}
    for name, key in keys.items():
        for one in named_runtimes.named([name], cost.used_precision):
            _check_offered(config, key, *one.key)


def _check_offered(config: SearchConfig, key: str, runtime: Runtime, precision: Precision) -> None:
    if (runtime, precision) == ("torch", "fp32"):
        return
    kind = "cuda" if measuring_device.of(config).is_cuda else "cpu"
    text = offered.refusal(runtime, precision, kind) or offered.missing(runtime, precision, kind)
    if text is not None:
        raise config.error(key, text)


def _check_device(config: SearchConfig) -> None:
    measuring_device.check(config)
    try:
        device.check(config.cost.device)
        _check_runtime(config)
        energy.check(config)
    except DeviceError as error:
        raise config.error("cost.device", str(error)) from None


def look_at(config: SearchConfig) -> DataSummary:
    """What the images of a new search are. Raises UsageError when they cannot be used."""
    _check_source(config)
    return summary_of(_list_images(config))


def _check_source(config: SearchConfig) -> None:
    """Not asked of a stored search: of one that began with an idle path, nothing would be gained by refusing it."""
    if config.data.source == "digits" and config.data.path is not None:
        raise config.error(
            "data.path", "source digits brings its own images; remove path, or choose another source"
        )


def _check_heads(plan: Plan) -> None:
    """Arguments of baselines that the images decide on, and that would be overridden in silence."""
    follows = {
        "in_chans": ("channels", plan.data.channels),
        "num_classes": ("classes", len(plan.data.class_names)),
    }
    for name, baseline in (plan.config.baselines or {}).items():
        for argument, (what, number) in follows.items():
            given = baseline.args.get(argument, number)
            if given != number:
                text = f"{given!r}: follows from the images ({what}: {number}); remove it"
                raise plan.config.error(f"baselines.{name}.args.{argument}", text)


def _list_images(config: SearchConfig) -> dataset.Index:
    try:
        return dataset.index(config.data)
    except DataError as error:
        raise _located(config, "data", error, inside=()) from None


def _inspect(config: SearchConfig, found: dataset.Index) -> Inspection:
    try:
        return inspect(found, config.data)
    except DataError as error:
        raise _located(config, "data", error, inside=()) from None


def _decode_batch(config: SearchConfig, found: dataset.Index) -> Batch:
    """As many training images as a step takes, drawn."""
    train = found.splits["train"]
    count = min(config.training.batch_size, len(train), _MOST_DECODED)
    drawn = sorted(random.Random(config.data.seed).sample(train.tolist(), count))
    start = time.monotonic()
    try:
        found.listing.decode(np.array(drawn, np.int64), lambda: None)
    except DataError as error:
        raise _located(config, "data", error, inside=()) from None
    return Batch(count, time.monotonic() - start)


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
    except models.REFUSALS as error:
        raise config.error(key, f"{_shown(spec)} does not build: {_reason(error)}") from None


def _run_on_meta(config: SearchConfig, key: str, spec: ArchSpec) -> None:
    """Builds a model and has it classify one image of the search's size, without memory for either."""
    from spaces import models

    _count(config, key, spec)
    if reason := models.why_not(spec):
        is_unsized = models.has_fixed_size(spec.model) and "img_size" not in spec.args
        hint = f"; give args: {{img_size: {spec.image_size}}}" if is_unsized else ""
        raise config.error(key, f"{_shown(spec)}: {reason}{hint}")


def _listed(baselines: Collection[str]) -> str:
    return f"there are: {', '.join(baselines)}" if baselines else "there is none"


def _shown(spec: ArchSpec) -> str:
    return f"{spec.model} with {dict(spec.args)}"


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
