"""perform(job, emit) -> Outcome: one job, from its device to its result, whatever happens to it.

The project's one broad `except` is here. What a candidate raises becomes an Outcome (`failed`: its own fault, never
retried; `error`: this machine's, worth a retry). What `emit` raises is the driver's and passes through. A crash of
the interpreter is left to whoever started the process.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch

from spaces import models
from workers import device as devices
from workers import executing, lock, memory_limit
from workers.data import dataset
from workers.data.listing import Beat, DataError
from workers.device import Device
from workers.errors import (
    CandidateError,
    CheckpointError,
    DeviceError,
    MachineError,
    TeacherError,
    TooLargeError,
    WeightsError,
)
from workers.evaluate import evaluate_checkpoint
from workers.job import MEASURING, Decision, Emit, EpochReport, Job, Kind, Measurement, Outcome, Status
from workers.measure import inputs, malloc, protocol
from workers.memory_prediction import check_fits
from workers.plugins import load_plugins
from workers.probe import probe
from workers.settings import CostSettings, DataSettings
from workers.teach import teach
from workers.train import train
from workers.watchdog import Watchdog

T = TypeVar("T")
MAX_REASON = 300
MAX_DETAIL = 8000
_DEVICE_FAULTS = ("cuda error", "cudnn error", "cublas_status", "cusolver error", "nccl error", "hip error")


@dataclass(frozen=True)
class Failure:
    """Why work gave no result. status: `failed` or `error`. reason: one line. detail: the end of the traceback.
    device_lost: the process cannot use its accelerator any more and should be replaced. retry: False where trying
    again changes nothing. checkpoint_lost, teacher_lost: the checkpoint to go on from, or the teacher's, cannot
    be used. infeasible: it is right, and does not fit into the memory here."""

    status: Status
    reason: str
    detail: str
    device_lost: bool = False
    retry: bool = True
    checkpoint_lost: bool = False
    teacher_lost: bool = False
    infeasible: bool = False

    @property
    def notes(self) -> dict[str, bool]:
        """For the Outcome: what is not as usual."""
        names = ("device_lost", "checkpoint_lost", "teacher_lost", "infeasible")
        unusual = {name: True for name in names if getattr(self, name)}
        return unusual if self.retry else unusual | {"retry": False}


def perform(job: Job, emit: Emit) -> Outcome:
    """Does one job in this process and says how it ended; raises only what `emit` raises.

    A hang ends the process after `job.settings.limits.step_seconds`; on a CPU a job that wants more memory than
    `workers.memory_limit` allows is `failed`.
    """
    start = time.monotonic()
    if not faulthandler.is_enabled():
        faulthandler.enable(file=2)
    reporting = _Reporting(emit)
    found: dict[str, Any] = {}
    failure = attempt(lambda: found.update(_run(job, reporting)), lambda: reporting.is_active)
    malloc.give_back()
    if failure is not None:
        found = {"status": failure.status, "reason": failure.reason, "detail": failure.detail}
        found |= {"epochs": tuple(reporting.reports), "epoch": reporting.epoch(job)}
        found["notes"] = failure.notes
    return Outcome(
        job=job.id,
        attempt=job.attempt,
        lease=job.lease,
        host=socket.gethostname(),
        pid=os.getpid(),
        seconds=time.monotonic() - start,
        **found,
    )


def attempt(work: Callable[[], object], is_foreign: Callable[[], bool] = lambda: False) -> Failure | None:
    """Runs `work`; what it raises comes back as a Failure, and the memory that it held is free again.

    is_foreign: asked then; whether the error is not the work's own and has to pass.
    """
    try:
        work()
    except Exception as error:
        if is_foreign():
            raise
        failure = _failure(error)
        traceback.clear_frames(error.__traceback__)
    else:
        return None
    gc.collect()
    if torch.cuda.is_initialized() and not failure.device_lost:
        torch.cuda.empty_cache()
    return failure


class _Reporting:
    """Hands reports on, and knows whether the driver is at work rather than the candidate."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.reports: list[EpochReport] = []
        self.is_active = False

    def __call__(self, report: EpochReport) -> Decision:
        self.reports.append(report)
        self.is_active = True
        decision = self._emit(report)
        self.is_active = False
        return decision

    def epoch(self, job: Job) -> int:
        """Epochs that the candidate has completed."""
        return self.reports[-1].epoch if self.reports else max(0, job.first_epoch - 1)


def _run(job: Job, emit: Emit) -> dict[str, Any]:
    """Fields of the Outcome."""
    with Watchdog(job.settings.limits.step_seconds) as watchdog:
        load_plugins()
        is_measure = job.kind in MEASURING
        cost = job.settings.cost
        place = training_device(cost)
        device = devices.resolve(cost.device, cost.threads) if is_measure else place
        trains_elsewhere = is_measure and cost.label is not None
        # Measured first: what cannot be trained is refused before that, where it would be trained.
        if job.kind is not Kind.EVALUATE and not trains_elsewhere:
            teacher = None if job.teacher is None else job.teacher.spec
            check_fits(job.spec, job.settings.recipe.batch_size, place, teacher)
        with _memory(device):
            if is_measure:
                found = _measure(job, watchdog)
            elif job.kind is Kind.PROBE:
                found = _probe(job, device, watchdog)
            else:
                # A worker a core unless told otherwise; and the same bits whatever the machine.
                with executing.threads(0 if device.is_cuda else job.execution.threads or 1):
                    found = _train_or_evaluate(job, device, emit, watchdog)
    return {"status": Status.DONE, "device_id": device.id} | found


def _measure(job: Job, watchdog: Watchdog) -> dict[str, Any]:
    images, digest = _sample(job.settings.data, watchdog.beat)
    watchdog.beat()
    cost = job.settings.cost

    def measured(cost: CostSettings, limits: tuple[float, ...]) -> Measurement:
        return protocol.measure(
            job.spec,
            cost,
            images,
            beat=watchdog.beat,
            waiting=watchdog.suspended,
            latency_limits=limits,
        )

    return {
        "measurement": measured(cost, job.latency_limits),
        "further": tuple(
            measured(
                replace(cost, runtime=one.runtime, precision=one.precision, energy_seconds=0),
                one.latency_limits,
            )
            for one in job.further
        ),
        "data_digest": digest,
        "notes": {"params": models.count(job.spec)},
    }


def _probe(job: Job, device: Device, watchdog: Watchdog) -> dict[str, Any]:
    probed, digest = probe(job, device, watchdog.beat, watchdog.suspended)
    return {"probed": probed, "data_digest": digest}


def _train_or_evaluate(job: Job, device: Device, emit: Emit, watchdog: Watchdog) -> dict[str, Any]:
    place = torch.device(device.torch)

    def settle() -> None:
        if device.is_cuda:
            torch.cuda.synchronize(place)

    def between_steps() -> float:
        watchdog.beat()
        return share.pause_if_wanted()

    # A GPU's training works the machine's cores too, and so steps aside for a measurement on the CPU.
    names = sorted({device.lock, devices.cpu_lock()})
    with lock.sharing(names, settle, watchdog.suspended) as share:
        if job.kind is Kind.EVALUATE:
            evaluation, digest = evaluate_checkpoint(job, place, "test", between_steps)
            return {"evaluation": evaluation, "data_digest": digest, "epoch": evaluation.epoch}
        work = teach if job.kind is Kind.TEACH else train
        result = work(job, place, emit, between_steps)
    return {
        "status": Status.STOPPED if result.stopped else Status.DONE,
        "epochs": result.epochs,
        "epoch": result.epoch,
        "checkpoint": result.checkpoint,
        "evaluation": result.evaluation,
        "data_digest": result.data_digest,
        "notes": dict(result.notes),
    }


def training_device(cost: CostSettings) -> Device:
    """Where a candidate is trained: on the GPU that is measured where this process sees it, else on its best device.

    A search that measures on the CPU of a machine with a GPU is trained on the GPU.
    """
    try:
        device = devices.resolve(cost.device, cost.threads)
    except DeviceError:
        return devices.resolve("auto", cost.threads)
    return device if device.is_cuda else devices.resolve("auto", cost.threads)


_samples: dict[DataSettings, tuple[np.ndarray, str]] = {}


def _sample(settings: DataSettings, beat: Beat) -> tuple[np.ndarray, str]:
    """A few training images, uint8 [n, side, side, channels], and the digest of all data; of the last settings again
    without looking."""
    if settings not in _samples:
        found = dataset.index(settings, beat)
        images = found.listing.decode(found.splits["train"][: inputs.MAX_IMAGES], beat)
        _samples.clear()
        _samples[settings] = (images, found.digest)
    return _samples[settings]


def _memory(device: Device) -> AbstractContextManager[object]:
    return nullcontext() if device.is_cuda else memory_limit.limited()


def _failure(error: Exception) -> Failure:
    detail = "".join(traceback.format_exception(error))[-MAX_DETAIL:]
    if isinstance(error, CandidateError):
        is_large = isinstance(error, TooLargeError)
        return Failure(Status.FAILED, _line(str(error)), detail, infeasible=is_large)
    if memory_limit.is_out_of_memory(error):
        return Failure(Status.FAILED, _line(_out_of_memory(error)), detail, infeasible=True)
    if isinstance(error, WeightsError):
        return Failure(Status.ERROR, _line(str(error)), detail, retry=False)
    if isinstance(error, TeacherError):
        return Failure(Status.ERROR, _line(str(error)), detail, teacher_lost=True)
    if isinstance(error, CheckpointError):
        return Failure(Status.ERROR, _line(str(error)), detail, checkpoint_lost=True)
    if isinstance(error, MachineError | DataError):
        return Failure(Status.ERROR, _line(str(error)), detail)
    named = _line(f"{type(error).__name__}: {error}")
    if _is_device_fault(error):
        return Failure(Status.ERROR, named, detail, device_lost=True)
    return Failure(Status.ERROR if isinstance(error, OSError) else Status.FAILED, named, detail)


def _is_device_fault(error: Exception) -> bool:
    if isinstance(error, torch.AcceleratorError):
        return True
    return isinstance(error, RuntimeError) and any(fault in str(error).lower() for fault in _DEVICE_FAULTS)


def _out_of_memory(error: Exception) -> str:
    if found := re.search(r"tried to allocate (\d+) bytes", str(error)):
        return f"out of memory: asked for {int(found[1]) / memory_limit.MB:,.0f} MB, more than a job may take here"
    text = str(error).partition(". GPU")[0] or type(error).__name__
    return f"out of memory: {text}"


def _line(text: str) -> str:
    """The first line that says something, short enough for a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" :")]
    first = " ".join(lines[0].split()) if lines else "no message"
    return first if len(first) <= MAX_REASON else first[: MAX_REASON - 3] + "..."
