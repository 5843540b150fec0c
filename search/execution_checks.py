"""Whether a new search can be trained as `training` says, on the device that trains."""

from __future__ import annotations

from search.plan import Plan
from search.probing import worker_cores
from workers import compiler
from workers.device import num_cores
from workers.execution import CHOICES, is_open
from workers.settings import RecipeSettings


def check(plan: Plan) -> None:
    """Raises UsageError naming a setting that cannot be used here."""
    config, training = plan.config, plan.config.training
    from workers.perform import training_device

    device = training_device(config.cost)
    if training.compile == "on" and (lacking := compiler.missing(device.is_cuda)):
        raise config.error("training.compile", f"on: {lacking}; install it, or set off")
    if training.precision == "bf16" and device.is_cuda and not _can_bf16(device.torch):
        raise config.error("training.precision", f"{device.name} cannot do bf16; set fp32")
    if training.threads != "auto":
        _check_threads(plan, device.is_cuda)
    is_probed = is_open(training, worker_cores(config))
    if training.probe_seconds != RecipeSettings.probe_seconds and not is_probed:
        raise config.error("training.probe_seconds", "no probe runs where nothing is left to auto; remove it")


def line(plan: Plan) -> str:
    """How trainings will be executed, for whoever runs `validate`."""
    training = plan.config.training
    told = ", ".join(f"{name} {getattr(training, name)}" for name in CHOICES)
    return f"{told}; auto: as a probe finds, once a family" if "auto" in told else told


def _check_threads(plan: Plan, is_cuda: bool) -> None:
    config, wanted, each = plan.config, plan.config.training.threads, worker_cores(plan.config)
    if is_cuda:
        raise config.error("training.threads", "training is on the GPU, which takes none; remove it")
    if wanted > each:
        text = f"{wanted} is more than the {each} of each worker ({num_cores()} here)"
        raise config.error("training.threads", f"{text}; lower it, or search.workers")


def _can_bf16(name: str) -> bool:
    import torch

    from workers.executing import can_bf16

    return can_bf16(torch.device(name))
