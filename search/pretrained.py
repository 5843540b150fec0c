"""Pretrained weights that a search asks for: whether their names mean something, whether they are to be had, and which
baselines it gets by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from huggingface_hub import constants

from search.config import SearchConfig
from search.config_sections import WEIGHTS
from search.plan import Plan
from spaces import baselines, zoo
from spaces.dims import SpaceError
from spaces.space import FAMILY, Space
from spaces.spec import ArchSpec
from workers import weights
from workers.errors import CandidateError

FEW_IMAGES = 50_000
"""Training images below which fresh weights are advised against. CIFAR-10 has as many, and there a plain ViT from fresh
weights stays points behind a fine-tuned one; with fewer it falls back farther."""


def zoo_of(config: SearchConfig) -> zoo.Zoo:
    """The zoo that knows every name of `space.zoo.model`. Names beyond the well-known ones are looked up in timm.

    Raises SpaceError for a name that timm does not know, and for weights that neither timm nor `weights_dir` has.
    """
    given = config.space.ranges.get(zoo.Zoo.name, {}).get("model", ())
    names = given if isinstance(given, list) else [given]
    beyond = [name for name in names if isinstance(name, str) and name not in zoo.WELL_KNOWN]
    found = {name: _look_up(name, config.training.weights_dir) for name in beyond}
    return zoo.Zoo({**zoo.WELL_KNOWN, **found})


def zoo_models(space: Space) -> Sequence[str]:
    """Names of the weights that a space may begin from; none without the family `zoo`."""
    name = f"{zoo.Zoo.name}.model"
    return next(
        ([str(value) for value in own.domain.values] for own in space.dimensions if own.name == name), ()
    )


def fresh_families(plan: Plan) -> list[str]:
    """Families whose candidates are trained from fresh weights."""
    is_fresh = plan.config.training.begins_fresh
    begun = {zoo.Zoo.name, *(plan.config.training.inherit or ())}
    return [name for name in plan.space.families if is_fresh or name not in begun]


def check_recipe(plan: Plan) -> None:
    """Raises UsageError where `finetune` is asked for and something has no weights."""
    config = plan.config
    if config.training.recipe != "finetune":
        return
    if fresh := fresh_families(plan):
        text = f"finetune needs weights for every candidate, and {_and(fresh)} have none"
        raise config.error("training.recipe", f"{text}; use auto, training.inherit, or space.families: [zoo]")
    for name, baseline in (config.baselines or {}).items():
        if baseline.weights is None:
            text = "recipe finetune needs weights for every baseline; give weights: NAME, or use recipe auto"
            raise config.error(f"baselines.{name}", text)


def check_reachable(plan: Plan) -> None:
    """Raises UsageError where weights that the config asks for are not to be had on this machine."""
    config = plan.config
    if config.training.begins_fresh:
        return
    asked = [("space.zoo.model", name) for name in zoo_models(plan.space)]
    for name, baseline in (config.baselines or {}).items():
        if baseline.weights is not None:
            asked.append((f"baselines.{name}.weights", baseline.weights))
    for key, name in asked:
        if not weights.reachable(name, config.training.weights_dir):
            raise config.error(key, not_reachable(name, config.training.weights_dir))


def not_reachable(name: str, weights_dir: str | None) -> str:
    """That weights are not to be had, and the remedy."""
    folder = weights_dir or "a folder that training.weights_dir names"
    return f"the weights {name} are {_nowhere()}; put {name}.safetensors into {folder}"


def check_files(plan: Plan) -> None:
    """Raises UsageError where a file of weights that is on this machine cannot be read, or does not fit what would
    begin from it. Of those that have yet to be downloaded nothing can be known."""
    from workers.pretrained import check

    config = plan.config
    if config.training.begins_fresh:
        return
    begun = [("space.zoo.model", name, _outermost(plan.space, name)) for name in zoo_models(plan.space)]
    for name, spec in plan.baselines.items():
        if spec.weights is not None:
            begun.append((f"baselines.{name}.weights", spec.weights, [spec]))
    for key, name, specs in begun:
        path = weights.find_local(name, config.training.weights_dir)
        if path is None:
            continue
        try:
            check(specs, path)
        except CandidateError as error:
            raise config.error(key, f"{error}; put the right file there, or leave {name} out") from None


def _outermost(space: Space, name: str) -> list[ArchSpec]:
    """Of the networks that begin from the weights `name`, those of the smallest and the largest images, with as many
    blocks as there may be: those between fit where these do."""
    values = {own.name: own.domain.values for own in space.dimensions}
    blocks = [{"zoo.blocks": count} for count in sorted(values.get("zoo.blocks", ()), reverse=True)]
    found: list[ArchSpec] = []
    for size in sorted(values["zoo.image_size"]):
        points = [
            {FAMILY: "zoo", "zoo.model": name, "zoo.image_size": size, **more} for more in (*blocks, {})
        ]
        found += [space.spec(point) for point in points if space.illegal(point) is None][:1]
    return [found[0], found[-1]] if found else []


def with_defaults(plan: Plan) -> tuple[Plan, str | None]:
    """The plan with the baselines that it gets where its config is silent on them, spelled out in its config; and why
    pretrained ones are missing, where some are.

    Asks the hub, so it is done once, when a search begins. With recipe `finetune` the scaled ResNet is left out, which
    has no weights, and with those that begin from fresh weights the pretrained ones.
    """
    config = plan.config
    if config.baselines is not None:
        return plan, None
    specs = {} if config.training.recipe == "finetune" else dict(plan.baselines)
    if config.training.begins_fresh:
        why = f"no pretrained ones: recipe {config.training.recipe} trains from fresh weights"
        return plan.with_baselines(specs), why
    offered = baselines.pretrained_baselines(plan.space.task)
    found = {
        name: spec
        for name, spec in offered.items()
        if weights.reachable(spec.weights or "", config.training.weights_dir)
    }
    absent = [name for name in offered if name not in found]
    why = f"no pretrained {_and(absent)}: the weights are {_nowhere()}" if absent else None
    return plan.with_baselines(specs | found), why


def advice(plan: Plan) -> str | None:
    """A line for a search that trains from fresh weights on few images."""
    fresh, count = fresh_families(plan), plan.data.num_images["train"]
    if not fresh or count >= FEW_IMAGES:
        return None
    if zoo.Zoo.name not in plan.space.families:
        remedy = "add zoo to space.families (weights from the hub, or from training.weights_dir)"
    elif zoo.Zoo.name in fresh:
        remedy = "training.recipe auto gives them to the zoo"
    else:
        remedy = "compare them with the zoo's"
    return (
        f"{_and(fresh)} will be trained from fresh weights on {count:,} images; below {FEW_IMAGES:,} images, "
        f"pretrained weights usually do better: {remedy}"
    )


def _look_up(name: str, weights_dir: str | None) -> zoo.Pretrained:
    from spaces import models
    from workers.plugins import load_plugins

    load_plugins()
    if not WEIGHTS.fullmatch(name):
        raise SpaceError(f"zoo.model: {name[:60]!r} is no name of weights, such as resnet18.a1_in1k")
    try:
        found = zoo.known(zoo.architecture(name)) or models.pretrained(name)
    except ValueError as error:
        raise SpaceError(f"zoo.model: {name!r}: {error}; {near(name)}") from None
    if models.has_pretrained(name) or weights.find_local(name, weights_dir):
        return found
    folder = weights_dir or "training.weights_dir"
    raise SpaceError(
        f"zoo.model: {name!r} names no pretrained weights; {near(name)}, and {folder} no {name}.safetensors"
    )


def near(name: str) -> str:
    """Which weights of timm have names like this one."""
    from spaces import models

    found = models.nearest_pretrained(name)
    return f"timm has {', '.join(found)}" if found else "timm has nothing near"


def _nowhere() -> str:
    if constants.HF_HUB_OFFLINE:
        return "not on this machine, and HF_HUB_OFFLINE is set"
    return "neither on this machine nor to be had from huggingface.co"


def _and(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
