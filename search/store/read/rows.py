"""What the tables hold, as frozen dataclasses. Times are UTC seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from search.states import AttemptState, CandidateState, JobState, QueueState, SearchState
from spaces.spec import ArchSpec


@dataclass(frozen=True)
class SearchRow:
    """state: as it is now, `interrupted` when its driver is gone; stored_state: as it was written.
    data: image_size, channels, class_names, num_images by split, digest. The rest is the lease."""

    id: int
    name: str
    state: SearchState
    stored_state: SearchState
    config: Mapping[str, Any]
    created: float
    started: float | None
    ended: float | None
    deadline: float | None
    reason: str | None
    data: Mapping[str, Any]
    artifacts: str
    device_id: str | None
    lease: int
    owner_host: str | None
    owner_boot: str | None
    owner_pid: int | None
    owner_started: float | None
    beat: int
    beat_time: float | None


@dataclass(frozen=True)
class CandidateRow:
    """number: from 1; baselines have negative ones and a name, a teacher 0 and one. rung: index of the
    highest one completed; epoch: epochs completed there.
    measured: quantity -> value, the best knowledge; intervals: quantity ->
    (low, high), 95%.
    by_rung: rung index -> quantity -> value. analysis: params, flops, ... as computed from the
    architecture."""

    id: int
    search_id: int
    number: int
    role: str
    name: str | None
    family: str
    point: Mapping[str, Any]
    spec: ArchSpec
    digest: str
    analysis: Mapping[str, Any]
    state: CandidateState
    reason: str | None
    rung: int | None
    epoch: int
    measured: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    by_rung: Mapping[int, Mapping[str, float]]
    trial: int | None
    told: bool
    created: float
    ended: float | None

    @property
    def is_baseline(self) -> bool:
        return self.role == "baseline"


@dataclass(frozen=True)
class JobView:
    """candidate: its number. first_epoch, last_epoch: both included; 0, 0 where nothing is trained."""

    id: int
    candidate: int
    kind: str
    rung: int | None
    first_epoch: int
    last_epoch: int
    state: JobState
    reason: str | None
    created: float
    ended: float | None
    num_attempts: int


@dataclass(frozen=True)
class AttemptView:
    """One try at a job. seconds: busy time that the worker reported. detail: the traceback, where there is
    one."""

    id: int
    job: int
    kind: str
    number: int
    lease: int
    state: AttemptState
    reason: str | None
    detail: str | None
    host: str | None
    pid: int | None
    device_id: str | None
    started: float
    ended: float | None
    seconds: float | None


@dataclass(frozen=True)
class EpochView:
    """One epoch of a candidate, scored on the validation split. accuracy with its 95% Wilson interval."""

    candidate_id: int
    epoch: int
    train_loss: float
    val_loss: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    learning_rate: float
    seconds: float
    pause_seconds: float
    time: float


@dataclass(frozen=True)
class MeasurementView:
    """figures: the fields of `workers.job.Measurement`. is_cached: taken from an earlier measurement of the
    same architecture under the same conditions, at `time`."""

    id: int
    candidate_id: int | None
    digest: str
    protocol: str
    device_id: str
    threads: int
    runtime: str
    precision: str
    batch_size: int
    figures: Mapping[str, Any]
    is_cached: bool
    time: float


@dataclass(frozen=True)
class EvaluationView:
    """figures: the fields of `workers.job.Evaluation`."""

    id: int
    candidate_id: int
    split: str
    epoch: int
    figures: Mapping[str, Any]
    time: float


@dataclass(frozen=True)
class ArtifactView:
    """path: relative to the search's artifacts folder."""

    id: int
    candidate_id: int | None
    kind: str
    path: str
    epoch: int | None
    sha256: str
    num_bytes: int
    time: float


@dataclass(frozen=True)
class EventView:
    """candidate: the number of the one that it is about, if any."""

    id: int
    time: float
    kind: str
    candidate: int | None
    text: str


@dataclass(frozen=True)
class QueueRow:
    """A search that waits for a runner, or is run by one. search_id: of the search, once it has begun. modules: that
    were allowed as it was submitted. held: not to be run before somebody asks for it. started: when a runner took it
    last. The rest is that runner's lease; claim tells it from earlier ones."""

    id: int
    name: str
    search_id: int | None
    modules: tuple[str, ...]
    priority: int
    window: str | None
    state: QueueState
    held: bool
    reason: str | None
    created: float
    started: float | None
    ended: float | None
    failures: int
    not_before: float | None
    claim: int
    owner_host: str | None
    owner_boot: str | None
    owner_pid: int | None
    owner_started: float | None
    beat: int
    beat_time: float | None


@dataclass(frozen=True)
class RunnerRow:
    """A process that works the queue off, as its lease tells."""

    id: int
    owner_host: str
    owner_boot: str
    owner_pid: int
    owner_started: float
    beat: int
    beat_time: float
