"""What a probe times: steps of training as each execution does them, of a few architectures."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from spaces.spec import ArchSpec
from workers import executing
from workers.data.batches import Augment, Batch, DeviceData, batches_per_epoch, training_batches
from workers.device import Device
from workers.errors import CandidateError
from workers.execution import Execution
from workers.job import Job
from workers.knobs import knobs_of
from workers.memory_limit import is_out_of_memory
from workers.memory_prediction import check_fits
from workers.probe_choice import SHORTEST_TURN
from workers.recipe import Training, compose, is_fine_tuned, seed_of
from workers.train import LossWatch, backward, loss_of

LOSS_TOLERANCE = 0.1
"""Of the loss of fp32, how far another way's may be from it."""


class Bench:
    """The architectures, each trained in as many copies as there are memory formats."""

    def __init__(self, job: Job, device: Device, data: DeviceData, beat: Callable[[], object]) -> None:
        assert job.probe is not None
        self._beat, self._device = beat, data.device
        self._watch = LossWatch(data.device)
        self._subjects = [_Subject(spec, job, data) for spec in (job.spec, *_fitting(job, device))]
        batches = batches_per_epoch(len(data.splits["train"]), job.settings.recipe.batch_size)
        self.steps_per_epoch = math.ceil(batches / self._subjects[0].accumulation)

    @property
    def num_subjects(self) -> int:
        return len(self._subjects)

    def why_out(self, way: Execution) -> str | None:
        """Why a way is out before it is timed: what its first pass and step show. None where nothing is."""
        try:
            for subject in self._subjects:
                self._beat()
                with executing.threads(way.threads):
                    if reason := subject.differs(way):
                        return reason
                    subject.step(way, self._watch)
                    self._watch.close()
        except CandidateError as error:
            return str(error)
        except RuntimeError as error:
            return "ran out of memory" if is_out_of_memory(error) else " ".join(str(error).split())[:200]
        return None

    def turn(self, way: Execution, subject: int, seconds: float = SHORTEST_TURN) -> float:
        """Milliseconds a step, of at least one and for `seconds` at least."""
        self._beat()
        with executing.threads(way.threads):
            self._settle()
            begun, count, now = time.perf_counter(), 0, 0.0
            while not count or now < seconds:
                self._subjects[subject].step(way, self._watch)
                count += 1
                now = time.perf_counter() - begun
            self._watch.close()
            self._settle()
            return (time.perf_counter() - begun) / count * 1e3

    def compile(self, way: Execution) -> float:
        """Compiles the first architecture for the sizes of batches that an epoch has; returns the seconds it took."""
        begun = time.perf_counter()
        with executing.threads(way.threads):
            self._subjects[0].compile(way, self._watch)
            self._watch.close()
            self._settle()
        return time.perf_counter() - begun

    def _settle(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def _fitting(job: Job, device: Device) -> list[ArchSpec]:
    """The architectures beside the job's own for whose training there is memory."""
    found = []
    for spec in () if job.probe is None else job.probe.beside:
        with contextlib.suppress(CandidateError):
            check_fits(spec, job.settings.recipe.batch_size, device)
            found.append(spec)
    return found


class _Subject:
    """One architecture: a training a memory format, all of the same weights at first, and a batch."""

    def __init__(self, spec: ArchSpec, job: Job, data: DeviceData) -> None:
        self._spec, self._job, self._data = spec, job, data.at(spec.image_size)
        self._trainings: dict[str, Training] = {}
        self._first: dict[str, float] = {}
        self._networks: dict[Execution, executing.Network] = {}
        recipe = job.settings.recipe
        knobs = knobs_of(recipe, is_fine_tuned(spec, recipe, job.inherit))
        self.accumulation = knobs.accumulation
        augment = Augment.of(job.settings.data, data.image_size, knobs, len(data.class_names))
        seed = seed_of(recipe.seed, job.candidate, "probe")
        self._batch: Batch = next(training_batches(self._data, recipe.batch_size, augment, seed))
        images = len(data.splits["train"])
        self._smallest = images // batches_per_epoch(images, recipe.batch_size)

    def differs(self, way: Execution) -> str | None:
        """How a way's loss is not that of fp32, of the same weights and batch, or its memory format's not that of the
        reference at first; None where all is well."""
        training = self._training(way)
        pairs = [(self._first[way.memory_format], next(iter(self._first.values())))]
        pairs.append((self._loss(way, training), self._loss(replace(way, precision="fp32"), training)))
        for found, expected in pairs:
            if not math.isfinite(found):
                return f"its loss is {found}"
            if abs(found - expected) > LOSS_TOLERANCE * max(abs(expected), LOSS_TOLERANCE):
                return f"its loss is {found:.4g} where the reference has {expected:.4g}"
        return None

    def step(self, way: Execution, watch: LossWatch) -> None:
        """One step of training. Raises CandidateError before one that is not finite changes the weights, on a CPU."""
        training = self._training(way)
        training.network = self._network(way, training)
        count = self.accumulation
        done = backward(training, itertools.repeat(self._batch, count), count, lambda: 0.0)
        watch.see(done.loss, done.norm, training.updates + 1, training.learning_rate)
        training.optimizer.step()
        training.advance()

    def compile(self, way: Execution, watch: LossWatch) -> None:
        self.step(way, watch)
        images, labels = self._batch
        if len(images) != self._smallest:
            whole, self._batch = self._batch, (images[: self._smallest], labels[: self._smallest])
            self.step(way, watch)
            self._batch = whole

    def _loss(self, way: Execution, training: Training) -> float:
        training.network = self._network(way, training)
        torch.manual_seed(0)
        with torch.no_grad():
            return loss_of(training, *self._batch).item()

    def _network(self, way: Execution, training: Training) -> executing.Network:
        if way not in self._networks:
            call = executing.compiled(training.model) if way.compiled else training.model
            self._networks[way] = executing.Network(call, way, self._data.device.type)
        return self._networks[way]

    def _training(self, way: Execution) -> Training:
        if way.memory_format not in self._trainings:
            recipe = self._job.settings.recipe
            seed = seed_of(recipe.seed, self._job.candidate, "weights")
            batches = batches_per_epoch(len(self._data.splits["train"]), recipe.batch_size)
            training = compose(self._spec, recipe, batches, seed, self._data.device, None, self._job.inherit)
            executing.execute(training, replace(way, compiled=False))
            training.class_weights = self._data.class_weights
            training.model.train()
            self._trainings[way.memory_format] = training
            self._first[way.memory_format] = self._loss(replace(way, precision="fp32"), training)
        return self._trainings[way.memory_format]
