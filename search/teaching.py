"""The teacher of a search: which network it is, where that comes from, and who can learn from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from search import pretrained
from search.errors import UsageError
from search.plan import Plan, Teacher, baseline_of
from spaces import baselines, deit, zoo
from spaces.spec import ArchSpec
from workers import weights
from workers.distillation_settings import DistillationSettings
from workers.errors import CandidateError

_KEY = "training.distillation"


def with_teacher(plan: Plan, is_new: bool = True) -> Plan:
    """The plan with its teacher, where its config asks for one.

    is_new: of a search that is to begin; else a checkpoint file may be gone, which the search has a copy of, and the
    plan then has no teacher. Raises UsageError for a teacher that cannot be, and for who cannot learn from it.
    """
    settings = plan.config.training.distillation
    if settings is None:
        return plan
    _check_token(plan, settings)
    path = settings.teacher.checkpoint
    if path is not None and not is_new and not Path(path).is_file():
        return plan
    return replace(plan, teacher=_teacher(plan, settings))


def check_weights(plan: Plan) -> None:
    """Raises UsageError where a teacher's pretrained weights are not to be had, or are here and do not fit."""
    from workers.pretrained import check

    config, teacher = plan.config, plan.teacher
    if teacher is None or teacher.spec.weights is None:
        return
    key, name, folder = f"{_KEY}.teacher.weights", teacher.spec.weights, config.training.weights_dir
    if not weights.reachable(name, folder):
        raise config.error(key, pretrained.not_reachable(name, folder))
    path = weights.find_local(name, folder)
    if path is None:
        return
    try:
        check([teacher.spec], path)
    except CandidateError as error:
        raise config.error(key, f"{error}; put the right file there, or name another teacher") from None


def _check_token(plan: Plan, settings: DistillationSettings) -> None:
    if settings.kind != "token":
        return
    without = [name for name in plan.space.families if name not in (deit.DeiT.name, zoo.Zoo.name)]
    without += [
        name for name in pretrained.zoo_models(plan.space) if not deit.has_token(zoo.architecture(name))
    ]
    if without:
        text = f"token needs a distillation token, and {', '.join(without)} have none"
        raise plan.config.error(f"{_KEY}.kind", f"{text}; use soft or hard, or space.families: [deit]")


def _teacher(plan: Plan, settings: DistillationSettings) -> Teacher:
    asked, key = settings.teacher, f"{_KEY}.teacher"
    epochs = settings.of_teacher(plan.config.training).epochs
    if asked.checkpoint is not None:
        return _of_checkpoint(plan, Path(asked.checkpoint))
    if asked.train == baselines.SCALED:
        return Teacher(asked.train, "trained here", baseline_of(plan.space), epochs)
    if asked.train is not None:
        spec = _whole(plan, f"{key}.train", asked.train, None)
        return Teacher(asked.train, "trained here", spec, epochs)
    assert asked.weights is not None
    spec = _whole(plan, f"{key}.weights", asked.weights, asked.weights)
    return Teacher(asked.weights, "fine-tuned here", spec, epochs)


def _whole(plan: Plan, key: str, name: str, named_weights: str | None) -> ArchSpec:
    """A network of timm at the image size that published baselines have. Raises UsageError."""
    from spaces import models
    from workers.plugins import load_plugins

    load_plugins()
    arch, task = zoo.architecture(name), plan.space.task
    size = baselines.published_size(task)
    if named_weights is None and "." in name:
        raise plan.config.error(
            key, f"{name!r} names weights; give it as teacher.weights, or train: {arch} for fresh ones"
        )
    try:
        known = zoo.known(arch) or models.pretrained(arch)
    except ValueError as error:
        near = ", ".join(models.nearest_models(name)) or "nothing near"
        raise plan.config.error(key, f"{name!r}: {error}; timm has {near}") from None
    if named_weights is not None and not _has_weights(plan, named_weights):
        raise plan.config.error(key, f"{name!r} names no pretrained weights; {pretrained.near(name)}")
    if reason := known.refuses(size):
        raise plan.config.error(key, f"{name}: {reason}; name another teacher")
    spec = zoo.Zoo({name: known}).whole(task, name, size)
    return replace(spec, weights=named_weights)


def _has_weights(plan: Plan, name: str) -> bool:
    from spaces import models

    folder = plan.config.training.weights_dir
    return models.has_pretrained(name) or weights.find_local(name, folder) is not None


def _of_checkpoint(plan: Plan, path: Path) -> Teacher:
    from workers.teach import origin_of

    def refuse(text: str) -> UsageError:
        return plan.config.error(f"{_KEY}.teacher.checkpoint", text)

    try:
        origin = origin_of(path)
    except CandidateError as error:
        raise refuse(str(error)) from None
    if origin.data != plan.data.digest:
        raise refuse(
            f"{path}: was trained on other images or splits (digest {origin.data}, here {plan.data.digest}), and may "
            "have seen those that are scored here; name a checkpoint of a search on the same data"
        )
    return Teacher(f"{origin.spec.model} of {path.name}", "taken over", origin.spec, 0)
