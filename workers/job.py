"""Job -> Outcome: what crosses the border between the driver and a worker.

Frozen and picklable; standard library and `spaces.spec` only. `to_json` and `from_json` are the wire format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from spaces.spec import ArchSpec
from workers import distillation_settings
from workers.execution import Execution, Probed, ProbeTask
from workers.settings import (
    CostSettings,
    DataSettings,
    JobSettings,
    LimitSettings,
    Precision,
    RecipeSettings,
    Runtime,
)


class Kind(StrEnum):
    """reference: measures as `measure` does, to see whether the device is as it was; no candidate gets the figures."""

    MEASURE = "measure"
    REFERENCE = "reference"
    PROBE = "probe"
    TEACH = "teach"
    TRAIN = "train"
    EVALUATE = "evaluate"


MEASURING = frozenset({Kind.MEASURE, Kind.REFERENCE})
"""Kinds that take the search's device for themselves, and whose outcome is a Measurement."""


class Decision(StrEnum):
    """The answer to an EpochReport: go on, or checkpoint and end the job early."""

    CONTINUE = "continue"
    STOP = "stop"


class Status(StrEnum):
    """done: the job's purpose is fulfilled. stopped: told to stop, checkpoint written. failed: the candidate's own
    fault, never retried. error: the device's or the machine's fault, worth a retry."""

    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    ERROR = "error"


@dataclass(frozen=True)
class CheckpointRef:
    """A checkpoint on disk. path: relative to the artifacts folder. epoch: epochs completed. sha256: of the file."""

    path: str
    epoch: int
    sha256: str
    num_bytes: int


@dataclass(frozen=True)
class TeacherRef:
    """A network to learn from: name, as it is shown; its checkpoint, below the artifacts of the search."""

    name: str
    spec: ArchSpec
    checkpoint: CheckpointRef


@dataclass(frozen=True)
class Further:
    """A runtime to measure in beside that of `settings.cost`. latency_limits: as of a Job."""

    runtime: Runtime
    precision: Precision
    latency_limits: tuple[float, ...] = ()


@dataclass(frozen=True)
class Job:
    """One piece of work on one architecture.

    (id, attempt, lease): identifies who may report; anything stale is refused by the driver.
    candidate: number in its search; baselines are negative. It seeds the training with `settings.recipe.seed`.
    first_epoch, last_epoch: a train or teach job trains epochs first_epoch..last_epoch, counted from 1, both included;
        0, 0 where nothing is trained. It resumes from `checkpoint` when first_epoch > 1.
    artifacts: folder that checkpoints are written below.
    teacher: of a train job that learns from one.
    latency_limits: upper bounds, ms, that a measured latency will be judged by.
    further: of a measure job, runtimes to measure in as well.
    inherit: name of the pretrained weights that a train job begins from parts of.
    execution: of a train or teach job. probe: of a probe job, what it chooses for.
    """

    id: int
    attempt: int
    lease: int
    kind: Kind
    search: str
    candidate: int
    spec: ArchSpec
    settings: JobSettings
    artifacts: str
    first_epoch: int = 0
    last_epoch: int = 0
    checkpoint: CheckpointRef | None = None
    latency_limits: tuple[float, ...] = ()
    teacher: TeacherRef | None = None
    inherit: str | None = None
    execution: Execution = field(default_factory=Execution)
    probe: ProbeTask | None = None
    further: tuple[Further, ...] = ()

    @property
    def weights(self) -> str | None:
        """Name of the pretrained weights that training may begin from, whole or in parts."""
        return self.inherit or self.spec.weights

    def to_json(self) -> str:
        teacher = self.teacher and asdict(self.teacher) | {"spec": self.teacher.spec.to_dict()}
        probe = self.probe and self.probe.to_dict()
        specs = {"spec": self.spec.to_dict(), "teacher": teacher, "probe": probe}
        return json.dumps(asdict(self) | specs, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Job:
        data = json.loads(text)
        settings = data.pop("settings")
        checkpoint = data.pop("checkpoint")
        return cls(
            **data
            | {
                "kind": Kind(data["kind"]),
                "spec": ArchSpec.from_dict(data["spec"]),
                "settings": JobSettings(
                    data=DataSettings(**settings["data"]),
                    recipe=_recipe(settings["recipe"]),
                    cost=CostSettings(**settings["cost"]),
                    limits=LimitSettings(**settings["limits"]),
                ),
                "checkpoint": CheckpointRef(**checkpoint) if checkpoint else None,
                "teacher": _teacher(data["teacher"]),
                "execution": Execution(**data["execution"]),
                "probe": ProbeTask.from_dict(data["probe"]) if data["probe"] else None,
                "latency_limits": tuple(data["latency_limits"]),
                "further": tuple(
                    Further(**one | {"latency_limits": tuple(one["latency_limits"])})
                    for one in data["further"]
                ),
            }
        )


@dataclass(frozen=True)
class EpochReport:
    """One epoch of one attempt, scored on the validation split with the averaged weights where there are any.

    epoch: counted from 1. train_loss: mean over the epoch's images. seconds: wall clock of training and validation,
    without the pauses for measurements (pause_seconds). learning_rate: at the epoch's last step.
    accuracy and its 95% Wilson interval: fraction of validation images.
    """

    job: int
    attempt: int
    lease: int
    epoch: int
    train_loss: float
    val_loss: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    learning_rate: float
    seconds: float
    pause_seconds: float = 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> EpochReport:
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Measurement:
    """Measured cost of one architecture under one set of conditions.

    latency_*: of one synchronised call, input copy included. latency_relative_error: standard error of the median
    divided by it; the interval is the median's 95% interval. latency_spread: interquartile range ÷ median.
    p99 is null under 500 samples. throughput: images a second at throughput_batch_size.
    peak_memory_mb: device memory on a GPU, resident growth of the process on a CPU. model_mb: weights.
    stopped_by: `relative_error` or `max_seconds`. flags: `contended`, ... ; empty when the figure is clean.
    software: versions by name, of what could change the figures; empty in measurements of before it was kept.
    device_ms: of the same call, what passed on the device by its own clock (events), median; null on a CPU.
    energy_mj: an image, less what the device takes idle; null where it could not be told. energy_source: what counted
        it, or why there is none; empty in measurements of before.
    conditions: of the device as the calls ended, by name with units (`workers.measure.conditions`); null where it
        cannot be read.
    cache: `hot` or `cold`, as the calls of the latency and the throughput found it.
    samples: the timings behind the median, packed (`workers.measure.samples`); empty where they are kept elsewhere.
    """

    protocol: str
    device_id: str
    device_name: str
    threads: int
    runtime: str
    precision: str
    batch_size: int
    latency_ms: float
    latency_ms_low: float
    latency_ms_high: float
    latency_ms_p95: float
    latency_ms_p99: float | None
    latency_ms_spread: float
    latency_relative_error: float
    num_samples: int
    stopped_by: str
    throughput: float
    throughput_batch_size: int
    peak_memory_mb: float
    model_mb: float
    build_seconds: float
    first_call_ms: float
    seconds: float
    flags: tuple[str, ...] = ()
    software: Mapping[str, str] = field(default_factory=dict)
    device_ms: float | None = None
    energy_mj: float | None = None
    energy_source: str = ""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    cache: str = "hot"
    samples: str = ""


@dataclass(frozen=True)
class Evaluation:
    """A trained network scored on one split; intervals are 95% Wilson.

    recall, recall_low, recall_high: one a class, in the order of class_names; null where the split has no image of that
    class. class_counts: images of each class. calibration_error: the expected one, from 0 to 1 (`workers.evaluate`).
    confusions: (class, the other class that it was taken for, how many images), by their places in class_names; the
    most frequent first, at most 200.
    """

    split: str
    epoch: int
    num_images: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    loss: float
    class_names: tuple[str, ...]
    recall: tuple[float | None, ...]
    recall_low: tuple[float | None, ...]
    recall_high: tuple[float | None, ...]
    class_counts: tuple[int, ...]
    calibration_error: float
    confusions: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Outcome:
    """How one attempt at a job ended, and what it found.

    reason: why, for failed and error; one line that a user can read. detail: the traceback, capped.
    epoch: epochs completed by the candidate, for train jobs. pid, host: where it ran. seconds: wall clock.
    data_digest: of the images and splits that the worker used; null where no data was read.
    further: of a measure job, the measurements in the runtimes that it asked for beside `measurement`.
    notes: `params` (of a measure job), `weights` (the pretrained ones that training began from), `teacher` (what is
    learnt from whom), `stochastic_depth` (why there is none), `device_lost` (the process should be replaced),
    `checkpoint_lost` (the one to go on from cannot be used), `teacher_lost` (the teacher's cannot), `infeasible` (it
    does not fit into the memory here), `retry` (False: trying again does not mend the error).
    """

    job: int
    attempt: int
    lease: int
    status: Status
    reason: str | None = None
    detail: str | None = None
    epochs: tuple[EpochReport, ...] = ()
    epoch: int = 0
    checkpoint: CheckpointRef | None = None
    evaluation: Evaluation | None = None
    measurement: Measurement | None = None
    further: tuple[Measurement, ...] = ()
    probed: Probed | None = None
    data_digest: str | None = None
    device_id: str | None = None
    host: str = ""
    pid: int = 0
    seconds: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        data = json.loads(text)
        return cls(
            **data
            | {
                "status": Status(data["status"]),
                "epochs": tuple(EpochReport(**report) for report in data["epochs"]),
                "checkpoint": CheckpointRef(**data["checkpoint"]) if data["checkpoint"] else None,
                "evaluation": _evaluation(data["evaluation"]),
                "measurement": _measurement(data["measurement"]),
                "further": tuple(filter(None, map(_measurement, data["further"]))),
                "probed": Probed.from_dict(data["probed"]) if data["probed"] else None,
            }
        )


Emit = Callable[[EpochReport], Decision]


def _recipe(data: dict[str, Any]) -> RecipeSettings:
    settings: dict[str, Any] = data | {"distillation": distillation_settings.of_dict(data["distillation"])}
    return RecipeSettings(**settings)


def _teacher(data: dict[str, Any] | None) -> TeacherRef | None:
    if data is None:
        return None
    return TeacherRef(data["name"], ArchSpec.from_dict(data["spec"]), CheckpointRef(**data["checkpoint"]))


def _evaluation(data: dict[str, Any] | None) -> Evaluation | None:
    if data is None:
        return None
    figures: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
    }
    figures["confusions"] = tuple(tuple(one) for one in figures["confusions"])
    return Evaluation(**figures)


def _measurement(data: dict[str, Any] | None) -> Measurement | None:
    if data is None:
        return None
    figures = dict(data)
    figures["flags"] = tuple(figures["flags"])
    return Measurement(**figures)
