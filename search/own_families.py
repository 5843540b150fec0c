"""Families of the user's own that a config names as `module:Class`: found in modules that `--plugin` allowed, and tried
before anything is written."""

from __future__ import annotations

import hashlib
import inspect
import json
import random
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from search.brought import Brought
from search.config_errors import nearest
from search.errors import UsageError, UserError
from search.own_family import OwnFamily, guarded, own_family
from spaces import registry
from spaces.dims import SpaceError
from spaces.sized import IMAGE_SIZE
from spaces.space import FAMILY
from spaces.spec import ArchSpec
from workers import plugins
from workers.errors import MachineError

if TYPE_CHECKING:
    from search.config import SearchConfig
    from search.plan import Plan
    from search.store.read.rows import CandidateRow

NUM_TRIED = 20
FLOPS_TOLERANCE = 0.01
_TAKEN = ("preset", "families", "image_size", "family", "baseline")


def find(references: Sequence[str]) -> dict[str, OwnFamily]:
    """Reference -> family, of those that are named as `module:Class`. Imports all modules that were allowed, and no
    others.

    Raises MachineError where one of them cannot be, and SpaceError, beginning with `families: `, for a family whose
    module was not allowed, that is not there or is none.
    """
    for reference in references:
        _check_allowed(reference)
    plugins.load_plugins()
    found: dict[str, OwnFamily] = {}
    for reference in references:
        family = _find(reference)
        _check_name(family, found.values())
        found[reference] = family
    return found


def named(config: SearchConfig) -> dict[str, OwnFamily]:
    """Those that a config names, as `find` has them.

    Raises UsageError: at `space.families` for a family that cannot be had, at the key for dimensions of a family that
    there is not.
    """
    try:
        found = find(config.space.references)
    except SpaceError as error:
        raise config.error("space.families", str(error).removeprefix("families: ")) from error
    except MachineError as error:
        raise UsageError(f"--plugin: {error}") from error
    if found:
        _check_keys(config, found)
    return found


def try_out(plan: Plan) -> None:
    """Builds up to 20 drawn networks of every family of the user's, and has each classify an image, without memory for
    either. Raises SpaceError naming what goes wrong."""
    for family in plan.own.values():
        for spec in drawn(plan, family.name):
            if reason := _trouble(family, spec):
                raise family.wrong(f"{spec.model} with {dict(spec.args)}: {reason}")


def drawn(plan: Plan, family: str) -> list[ArchSpec]:
    """Different networks of one family, at most 20, the same for the same search."""
    rng = random.Random(plan.config.search.seed)
    draws = (plan.space.sample(rng) for _ in range(2 * NUM_TRIED * len(plan.space.families)))
    specs = {spec.digest: spec for spec in (plan.space.spec(p) for p in draws if p[FAMILY] == family)}
    return list(specs.values())[:NUM_TRIED]


def without_flops(plan: Plan) -> list[str]:
    """Names of the families of the user's that have networks whose FLOPs are not known."""
    return [
        name
        for name in plan.own
        if any("flops" not in plan.closed_form(name, spec) for spec in drawn(plan, name))
    ]


def _check_allowed(reference: str) -> None:
    module = reference.partition(":")[0]
    if module not in plugins.allowed():
        raise SpaceError(
            f"families: {reference}: its module was not allowed as this process started; start it as: "
            f"paretovit --plugin {module} ..."
        )


def _find(reference: str) -> OwnFamily:
    module, _, name = reference.partition(":")
    there = sys.modules[module]
    kind = getattr(there, name, None)
    if not inspect.isclass(kind):
        classes = [own for own, value in vars(there).items() if _is_own_class(value, module)]
        what = "is no class" if hasattr(there, name) else "is not in its module"
        others = nearest(name, classes) if classes else "it has no class"
        raise SpaceError(f"families: {reference}: {name} {what}; {others}")
    return own_family(reference, kind)


def _is_own_class(value: object, module: str) -> bool:
    return inspect.isclass(value) and value.__module__ == module


def _check_name(family: OwnFamily, others: Collection[OwnFamily]) -> None:
    if family.name in registry.FAMILIES:
        raise family.wrong(f"name {family.name!r} is that of a family of paretovit; choose another")
    if family.name in _TAKEN:
        raise family.wrong(f"name {family.name!r} has another meaning in a config; choose another")
    for other in others:
        if other.name == family.name:
            raise family.wrong(f"name {family.name!r} is that of {other.reference} too; choose another")


def _check_keys(config: SearchConfig, found: Mapping[str, OwnFamily]) -> None:
    names = [family.name for family in found.values()]
    for key in config.space.ranges:
        if key in found:
            raise config.error(f"space.{key}", f"its dimensions go under its name: {found[key].name}")
        if key not in (*registry.FAMILIES, *names, IMAGE_SIZE):
            known = ["preset", "families", "image_size", *registry.FAMILIES, *names]
            raise config.error(f"space.{key}", f"unknown key or family; {nearest(key, known)}")


def _trouble(family: OwnFamily, spec: ArchSpec) -> str | None:
    """Why a network cannot be a candidate, or None."""
    import timm

    from spaces import models

    if not timm.is_model(spec.model):
        return (
            f"is no entry point of timm; {family.module} has to register it with timm.models.register_model"
        )
    if reason := guarded(family.reference, spec.model, lambda: models.why_not(spec)):
        return reason
    known = family.analyse(spec)
    if known is None:
        return None
    params, flops = guarded(family.reference, spec.model, lambda: _counted(spec))
    if known.params != params:
        return f"analyse(spec) says {known.params:,} parameters, and the network has {params:,}"
    if abs(known.flops - flops) > FLOPS_TOLERANCE * flops:
        return f"analyse(spec) says {known.flops:,} FLOPs, and torch's counter {flops:,}"
    return None


def _counted(spec: ArchSpec) -> tuple[int, int]:
    """Parameters, and FLOPs for one image, of the built network. Attention runs as plain matrix products, which the
    counter sees."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    from spaces import models

    with torch.device("meta"), torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        network = models.build(spec).eval()
        image = torch.zeros(1, spec.args["in_chans"], spec.image_size, spec.image_size)
        with FlopCounterMode(display=False) as counter:
            network(image)
    return sum(value.numel() for value in network.parameters()), counter.get_total_flops()


def brought(plan: Plan) -> Brought:
    """What a search that begins has from modules of the user's own."""
    own = {name: drawn(plan, name) for name in plan.own}
    models = {spec.model for specs in (list(plan.baselines.values()), *own.values()) for spec in specs}
    modules = {model: module for model in sorted(models) if (module := _module(model)) is not None}
    return Brought(
        modules=modules,
        families={
            name: plan.own[name].module
            for name, specs in own.items()
            if any(spec.model in modules for spec in specs)
        },
        dimensions={name: _digest(plan, name) for name in own},
    )


def check_unchanged(plan: Plan, before: Brought, rows: Sequence[CandidateRow]) -> None:
    """Raises UserError where a family of the user's is not what it was when the search began. rows: its candidates."""
    for name, family in plan.own.items():
        changed = (
            "its dimensions have changed" if before.dimensions.get(name) != _digest(plan, name) else None
        )
        of_it = (row for row in rows if row.family == name)
        if changed := changed or next(filter(None, (_changed(plan, row) for row in of_it)), None):
            raise UserError(
                f"space.families: {family.reference}: {changed} since the search began; bring the class back to what "
                "it was, or start another search"
            )


def _changed(plan: Plan, row: CandidateRow) -> str | None:
    if plan.space.illegal(row.point) is None and plan.space.spec(row.point).digest == row.digest:
        return None
    return f"it makes another network of #{row.number}, or none,"


def _module(model: str) -> str | None:
    import timm

    if not timm.is_model(model):
        return None
    where = timm.model_entrypoint(model).__module__
    return None if where.partition(".")[0] in ("timm", "spaces") else plugins.bringing(where)


def _digest(plan: Plan, family: str) -> str:
    own = [each.to_dict() for each in plan.space.dimensions if each.name.startswith(f"{family}.")]
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]
