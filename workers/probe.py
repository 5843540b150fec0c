"""A probe job: which execution trains an architecture, and others of its family, fastest here.

The ways that are left open are timed side by side (`probe_bench`) on the steps that training does, with a batch of the
real images, and one of them is chosen (`probe_choice`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import torch

from workers import compiler, executing, lock
from workers import device as devices
from workers.data.batches import resident
from workers.device import Device
from workers.execution import Execution, Probed, ProbeTask, reference
from workers.job import Job
from workers.probe_bench import Bench
from workers.probe_choice import Chooser
from workers.settings import RecipeSettings


def probe(job: Job, device: Device, beat: Callable[[], object], waiting: lock.Waiting) -> tuple[Probed, str]:
    """Chooses for job.spec and those of job.probe.beside; also returns the digest of the images.

    beat: called between turns. waiting: entered while other work has the device. Raises CandidateError where the
    reference cannot train the first of them, and what reading images raises.
    """
    started = time.perf_counter()
    task, recipe = job.probe, job.settings.recipe
    assert task is not None, "a probe job says what it is for"
    data = resident(job.settings.data, torch.device(device.torch), beat)
    plain = reference(recipe)
    if device.is_cuda:
        plain = replace(plain, threads=0)
    rivals = ways(recipe, task, device)
    with _alone(device, waiting) as pause:
        bench = Bench(job, device, data, lambda: (beat(), pause()))
        found = Chooser(bench, recipe, task, compiler.missing(device.is_cuda)).choose(rivals)
    trials = found.trials
    return (
        Probed(
            execution=replace(found.best, compiled=found.best.compiled or plain.compiled),
            reference=plain,
            speed=found.speed,
            why=found.why,
            trials=tuple(trials),
            seconds=time.perf_counter() - started,
        ),
        data.digest,
    )


def ways(recipe: RecipeSettings, task: ProbeTask, device: Device) -> list[Execution]:
    """The eager executions that may be chosen there, the reference first."""
    formats = ("contiguous", "channels_last") if recipe.memory_format == "auto" else (recipe.memory_format,)
    precisions = ("fp32", "bf16") if recipe.precision == "auto" else (recipe.precision,)
    if recipe.precision == "auto" and not executing.can_bf16(torch.device(device.torch)):
        precisions = ("fp32",)
    counts = (1, task.cores) if recipe.threads == "auto" and task.cores > 1 else (1,)
    if recipe.threads != "auto":
        counts = (recipe.threads,)
    if device.is_cuda:
        counts = (0,)
    return [
        Execution(precision, memory_format, False, count)
        for count, precision, memory_format in itertools.product(counts, precisions, formats)
    ]


@contextmanager
def _alone(device: Device, waiting: lock.Waiting) -> Iterator[Callable[[], object]]:
    """The device to ourselves. A GPU's probe works the CPU too, and steps aside for a measurement there between turns
    by what is yielded."""
    on_cpu = lock.sharing([devices.cpu_lock()], waiting=waiting) if device.is_cuda else nullcontext()
    with on_cpu as share, lock.exclusive(device.lock, waiting):
        yield (lambda: None) if share is None else share.pause_if_wanted
