"""Families whose candidates begin from parts of a larger pretrained network: whether they can, before a search."""

from __future__ import annotations

import random

from search import pretrained
from search.config_errors import nearest
from search.config_sections import WEIGHTS
from search.plan import Plan
from spaces.space import FAMILY
from spaces.spec import ArchSpec
from workers import weights
from workers.errors import CandidateError

KEY = "training.inherit"
_DRAWS, _TRIED = 400, 12


def check(plan: Plan) -> None:
    """Raises UsageError for a family that is not searched or cannot inherit, for weights that are not to be had here,
    and for those that are another kind of network's or do not fit the images; the files that are here are read."""
    config = plan.config
    asked = config.training.inherit
    if asked is None:
        return
    if config.training.begins_fresh:
        text = f"recipe {config.training.recipe} begins from fresh weights; use auto, or remove this"
        raise config.error(KEY, text)
    for family, name in asked.items():
        _check_family(plan, family, name)
    for family, name in asked.items():
        _check_weights(plan, family, name)


def _check_family(plan: Plan, family: str, name: str) -> None:
    from workers.inheritance import FAMILIES

    config = plan.config
    if family not in plan.space.families:
        text = f"is no family of this search; {nearest(family, list(plan.space.families))}"
        raise config.error(f"{KEY}.{family}", text)
    if family not in FAMILIES:
        text = f"{family} cannot inherit from other networks; {', '.join(FAMILIES)} can"
        raise config.error(f"{KEY}.{family}", text)
    if not WEIGHTS.fullmatch(name):
        text = f"{name[:60]!r} is no name of weights, such as deit_tiny_patch16_224.fb_in1k"
        raise config.error(f"{KEY}.{family}", text)


def _check_weights(plan: Plan, family: str, name: str) -> None:
    from workers.inheritance import check as check_fit
    from workers.plugins import load_plugins

    config, folder = plan.config, plan.config.training.weights_dir
    key = f"{KEY}.{family}"
    load_plugins()
    path = weights.find_local(name, folder)
    try:
        check_fit(_some(plan, family), name, path)
    except CandidateError as error:
        raise config.error(key, f"{error}; name other weights, or leave {family} out") from None
    if not weights.reachable(name, folder):
        raise config.error(key, pretrained.not_reachable(name, folder))


def _some(plan: Plan, family: str) -> list[ArchSpec]:
    """A few networks of a family, drawn."""
    rng = random.Random(plan.config.search.seed)
    points = (plan.space.sample(rng) for _ in range(_DRAWS * len(plan.space.families)))
    found = [plan.space.spec(point) for point in points if point[FAMILY] == family]
    return list({spec.digest: spec for spec in found}.values())[:_TRIED]
