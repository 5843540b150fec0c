"""A probe job: which execution trains an architecture fastest here.

The ways that are left open are timed side by side, on the steps that training does, with a batch of the real images:
in rounds, each way in turn, so that what disturbs one round disturbs all. The fastest is taken where it beats the
reference (fp32, contiguous, eager, one thread) by `MARGIN` for every architecture that is tried, and does so again
in a second series. A way whose loss is not finite, or not that of fp32 on the same batch and weights, is out.

Compiling has to save more than it takes within the shortest training that the choice is for.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import torch

from spaces.spec import ArchSpec
from workers import compiler, executing, lock
from workers import device as devices
from workers.data.batches import Augment, Batch, DeviceData, batches_per_epoch, resident, training_batches
from workers.device import Device
from workers.errors import CandidateError
from workers.execution import Execution, Probed, ProbeTask, Trial, reference
from workers.job import Job
from workers.knobs import knobs_of
from workers.measure.statistics import summarise
from workers.memory_limit import is_out_of_memory
from workers.recipe import Training, compose, is_fine_tuned, seed_of
from workers.settings import RecipeSettings
from workers.train import LossWatch, backward, loss_of

MARGIN = 1.05
"""How many times as fast as the reference a way has to be."""
SHARE = 0.05
"""Of the trainings that the choice is for, at most, that a probe takes."""
TURN_SECONDS = 0.02
FEWEST_ROUNDS, MOST_ROUNDS = 4, 60
DROPPED = 1.25
"""A way that takes so many times as long as the fastest, after a few rounds, is not timed any more."""
LOSS_TOLERANCE = 0.1
"""Of the loss of fp32, how far another way's may be from it."""
COMPILE_SECONDS = 60.0
COMPILE_GAIN = 0.4
"""Compiling is not even tried where it would not win if it took this long and saved this share, or where this long is
more than a probe may take."""

Seconds = Callable[[], float]


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
        bench = _Bench(job, data, lambda: (beat(), pause()))
        found = _Search(bench, recipe, task, compiler.missing(device.is_cuda)).choose(rivals)
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


class _Bench:
    """The architectures, each trained in as many copies as there are memory formats."""

    def __init__(self, job: Job, data: DeviceData, beat: Callable[[], object]) -> None:
        assert job.probe is not None
        self._beat, self._device = beat, data.device
        self._watch = LossWatch(data.device)
        self._subjects = [_Subject(spec, job, data) for spec in (job.spec, *job.probe.beside)]
        batches = batches_per_epoch(len(data.splits["train"]), job.settings.recipe.batch_size)
        self.steps_per_epoch = math.ceil(batches / self._subjects[0].accumulation)

    @property
    def num_subjects(self) -> int:
        return len(self._subjects)

    def why_out(self, way: Execution) -> str | None:
        """Why a way is out before it is timed: what its first pass and two steps show. None where nothing is."""
        try:
            for subject in self._subjects:
                self._beat()
                with executing.threads(way.threads):
                    if reason := subject.differs(way):
                        return reason
                    for _ in range(2):
                        subject.step(way, self._watch)
                    self._watch.close()
        except CandidateError as error:
            return str(error)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return "ran out of memory"
        return None

    def turn(self, way: Execution, subject: int, seconds: float = TURN_SECONDS) -> float:
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


@dataclass(frozen=True)
class _Found:
    best: Execution
    speed: float
    why: str
    trials: Sequence[Trial]


class _Search:
    """Chooses, given a bench."""

    def __init__(
        self, bench: _Bench, recipe: RecipeSettings, task: ProbeTask, no_compiler: str | None
    ) -> None:
        self._bench, self._recipe, self._task, self._no_compiler = bench, recipe, task, no_compiler
        self._trials: dict[Execution, Trial] = {}
        self._steps = bench.steps_per_epoch * task.epochs
        self._shortest = 0.0

    def choose(self, ways: Sequence[Execution]) -> _Found:
        """ways: eager ones, the reference first. Raises CandidateError where the reference is out."""
        plain = ways[0]
        self._admit(plain)
        if reason := self._trials[plain].out:
            raise CandidateError(reason)
        step_ms = self._bench.turn(plain, 0)
        self._shortest = step_ms / 1e3 * self._steps
        share = SHARE * self._shortest * self._task.trainings
        turns = (len(ways) + 2) * FEWEST_ROUNDS * self._bench.num_subjects
        least = turns * max(step_ms / 1e3, TURN_SECONDS)
        limit = max(least, min(self._recipe.probe_seconds, share))
        if len(ways) > 1 and least > share:
            why = f"comparing takes {least:.2g} s, more than {SHARE:.0%} of the trainings that it is for"
            best, speed = plain, 1.0
        else:
            best, speed, why = self._fastest(ways, limit)
        if self._recipe.compile == "auto":
            best, speed, why = self._compiled(best, speed, why, limit)
        return _Found(best, speed, why, list(self._trials.values()))

    def _admit(self, way: Execution) -> bool:
        self._trials[way] = Trial(way, out=self._bench.why_out(way))
        return self._trials[way].out is None

    def _fastest(self, ways: Sequence[Execution], limit: float) -> tuple[Execution, float, str]:
        plain = ways[0]
        admitted = [plain, *(way for way in ways[1:] if self._admit(way))]
        if len(admitted) == 1:
            return (
                plain,
                1.0,
                "there is no other way" if len(ways) == 1 else "no other way gives the same loss",
            )
        self._note(self._rounds(admitted, limit / 2))
        best = max(admitted[1:], key=lambda way: self._speed(way, plain))
        speed = self._speed(best, plain)
        if speed < MARGIN:
            return (
                plain,
                1.0,
                f"none is faster by {MARGIN - 1:.0%}; the next best, {best.words}: {speed:.2f}x",
            )
        again = self._rounds([plain, best], limit / 2)
        for pairs in zip(again[plain], again[best], strict=True):
            ratios = [one / other for one, other in zip(*pairs, strict=True)]
            if summarise(ratios).low < 1.0:
                return plain, 1.0, f"{best.words} was {speed:.2f}x as fast once, and not for certain again"
        self._note(again)
        speed = self._speed(best, plain)
        return best, speed, f"{speed:.2f}x the speed of {plain.words}"

    def _compiled(
        self, best: Execution, speed: float, why: str, limit: float
    ) -> tuple[Execution, float, str]:
        way = replace(best, compiled=True)
        if self._no_compiler is not None:
            self._trials[way] = Trial(way, out=self._no_compiler)
            return best, speed, why
        may_take = SHARE * self._shortest * self._task.trainings
        if min(may_take, COMPILE_GAIN * self._shortest) < COMPILE_SECONDS:
            out = f"its shortest training takes {self._shortest:.3g} s, too little to compile for"
            self._trials[way] = Trial(way, out=out)
            return best, speed, why
        try:
            seconds = self._bench.compile(way)
        except (CandidateError, RuntimeError, OSError) as error:
            self._trials[way] = Trial(way, out=f"does not compile: {' '.join(str(error).split())[:200]}")
            return best, speed, why
        timed = self._rounds([best, way], limit, [0])
        eager_ms, step_ms = (statistics.median(timed[each][0]) for each in (best, way))
        self._trials[way] = Trial(way, (step_ms,), seconds)
        if (seconds + self._steps * step_ms / 1e3) * MARGIN > self._steps * eager_ms / 1e3:
            return best, speed, why
        gain = eager_ms / step_ms
        return (
            way,
            speed * gain,
            f"{speed * gain:.2f}x the speed of the reference, once compiled in {seconds:.0f} s",
        )

    def _rounds(
        self, ways: Sequence[Execution], seconds: float, subjects: Sequence[int] | None = None
    ) -> dict[Execution, list[list[float]]]:
        """Step times, ms, by way and architecture; one a round. Ways that are far behind leave after a few rounds."""
        subjects = range(self._bench.num_subjects) if subjects is None else subjects
        found: dict[Execution, list[list[float]]] = {way: [[] for _ in subjects] for way in ways}
        running, end = list(ways), time.perf_counter() + seconds
        for number in range(MOST_ROUNDS):
            if number >= FEWEST_ROUNDS and time.perf_counter() > end:
                break
            for place in range(len(running)):
                way = running[(number + place) % len(running)]
                for index, subject in enumerate(subjects):
                    found[way][index].append(self._bench.turn(way, subject))
            if number == 2 and len(running) > 2:
                running = self._near(running, found)
        return found

    def _near(self, ways: Sequence[Execution], found: dict[Execution, list[list[float]]]) -> list[Execution]:
        taken = {way: sum(map(statistics.median, found[way])) for way in ways}
        return [way for way in ways if way == ways[0] or taken[way] < DROPPED * min(taken.values())]

    def _note(self, found: dict[Execution, list[list[float]]]) -> None:
        for way, times in found.items():
            self._trials[way] = Trial(way, tuple(map(statistics.median, times)))

    def _speed(self, way: Execution, plain: Execution) -> float:
        """Where it gained least."""
        pairs = zip(self._trials[plain].step_ms, self._trials[way].step_ms, strict=True)
        return min(one / other for one, other in pairs)
