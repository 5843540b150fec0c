"""What the REST API answers, field by field, for its OpenAPI document.

The answers are made by the functions that make the JSON of the command line, and are sent as they are; the tests hold
them against these models. Times are ISO 8601 in UTC; intervals are 95%, [low, high].
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Interval = tuple[float, float]
Time = Annotated[str, Field(description="ISO 8601, UTC")]
Quantities = Annotated[
    dict[str, float],
    Field(
        description="By quantity. accuracy is a fraction of 1 on the validation images; latency_ms, latency_ms_p95: "
        "milliseconds a call; throughput: images a second; peak_memory_mb, model_mb: MB of 10^6 bytes; params: "
        "weights; flops: floating point operations a forward pass, a multiplication with its addition counted as 2."
    ),
]
Intervals = Annotated[dict[str, Interval], Field(description="By quantity: 95%, [low, high], in its unit")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Spec(Strict):
    """An architecture: `timm.create_model(model, **args)` builds it."""

    model: str = Field(description="timm entry point")
    args: dict[str, Any]
    image_size: int = Field(description="Side of the input, pixels")


class Summary(Strict):
    name: str
    state: str = Field(
        description="queued, running, draining, paused, finished, stopped, failed or interrupted"
    )
    started: Time | None
    deadline: Time | None
    ended: Time | None
    reason: str | None


class Best(Strict):
    """Among the finished candidates, by the first objective."""

    candidate: int
    values: Quantities
    intervals: Intervals


class Teacher(Strict):
    """The network that candidates learn from."""

    name: str
    state: str
    reason: str | None
    kind: str = Field(description="What is learnt: soft, hard or token")
    accuracy: float | None = Field(description="On the validation split; null before it has one")
    interval: list[float] | None = Field(description="Of the accuracy, 95%: low and high")
    chance: str = Field("", description="In words, where its accuracy is not told apart from guessing")


class ScreenError(Strict):
    """How well one cost is predicted, found on networks that the prediction was not learnt from."""

    median: float = Field(description="Of the errors, as shares of the true cost")
    most: float = Field(description="95% of the errors are under this")
    count: int = Field(description="Measurements that were learnt from")
    limit: float = Field(description="That proposals are predicted to keep or to break")


class Screen(Strict):
    """Proposals that were left out because they were predicted to break a limit."""

    left_out: int
    checked: int = Field(description="Candidates measured though they were predicted to break it")
    misses: int = Field(description="Of these, those that kept it")
    trusted: bool = Field(description="False where too many did, so that nothing is left out any more")
    errors: dict[str, ScreenError] = Field(description="By quantity")


class Place(Strict):
    """Where a search is in the queue."""

    name: str
    state: str = Field(description="waiting or running")
    held: bool = Field(description="Not to be run before somebody resumes it")
    priority: int = Field(description="From 0 to 9; higher ones go first")
    window: str | None = Field(description="Hours of the day to run in, HH:MM-HH:MM by the runner's clock")
    submitted: Time
    begun: bool
    before: int | None = Field(description="How many come first; null while it runs or is held")
    reason: str | None


class Range(Strict):
    """A figure that was predicted, and between what it lies."""

    expected: float
    low: float
    high: float


class Fact(Strict):
    candidates: int
    epochs: int
    hours: float | None = Field(description="In which the search was driven; null before it is known")


class Forecast(Strict):
    """What was foreseen of a search, and what has become of it so far."""

    candidates: Range
    jobs: Range
    epochs: Range
    hours: Range
    ends_by: str = Field(description="What ends the search: candidates, time or epochs")
    basis: str = Field(description="What the lengths of jobs are from")
    made: float = Field(description="When, in seconds since 1970, UTC")
    fact: Fact


class Status(Strict):
    """How a search stands."""

    search: Summary
    candidates: dict[str, int] = Field(description="State -> number of candidates")
    baselines: dict[str, int] = Field(description="State -> number of baselines")
    jobs: dict[str, int] = Field(description="State -> number of jobs")
    epochs: int = Field(description="Epochs trained, all candidates and baselines together")
    forecasts: list[Forecast] = Field(description="The oldest first; empty before any was made")
    best: Best | None
    teacher: Teacher | None
    drift: str | None = Field(None, description="Readings of the reference, in words; null before any")
    executions: dict[str, str] = Field(description="By family, or model: how it is trained, in words")
    queue: Place | None = Field(description="null where it is not in the queue, or no more")
    screen: Screen | None = Field(description="null where no cost could be predicted yet, or none is limited")


class Point(Strict):
    """A candidate or baseline, and where it stands to the front."""

    candidate: int = Field(description="Its number; baselines have negative ones")
    name: str | None = Field(None, description="Of a baseline")
    family: str
    spec: Spec
    digest: str = Field(description="Of the spec")
    values: Quantities
    intervals: Intervals
    state: str
    standing: str = Field(
        description="front, dominated, outside, borderline, incomparable, unfinished, stopped, rejected, failed or "
        "baseline"
    )
    rung: int | None = Field(description="Index of the highest rung completed")
    epoch: int = Field(description="Epochs trained")
    reason: str | None


class Device(Strict):
    id: str | None
    name: str | None
    threads: int | None


class Conditions(Strict):
    """Under which all measured values of a front were taken."""

    device_id: str
    device_name: str
    threads: int
    runtime: str
    precision: str
    batch_size: int = Field(description="Images a call")
    protocol: str
    cache: str = Field(description="hot, or cold: emptied before each call")


class Front(Strict):
    """The candidates that no other one beats in every objective, the cheapest first."""

    search: str
    state: str
    device: Device
    conditions: Conditions | None
    objectives: list[str]
    constraints: dict[str, float] = Field(description="Quantity -> limit, in its unit")
    measured_how: dict[str, str] = Field(description="Quantity -> a sentence")
    baselines: list[Point]
    front: list[Point]
    candidates: list[Point] | None = Field(None, description="All candidates by number; with all=true only")


class Page(Strict):
    """Some of the candidates of a search, by number."""

    total: int = Field(description="Candidates in the search")
    offset: int
    limit: int
    candidates: list[Point]


class Epoch(Strict):
    """One epoch of training, scored on the validation images."""

    epoch: int = Field(description="From 1")
    train_loss: float
    val_loss: float
    accuracy: float = Field(description="Fraction of 1")
    interval: Interval = Field(description="Of the accuracy, 95% Wilson")
    learning_rate: float
    seconds: float
    pause_seconds: float = Field(description="Of them, spent waiting while a measurement had the device")


class Measurement(Strict):
    """Cost under the conditions that it names."""

    protocol: str
    device_id: str
    device_name: str
    threads: int
    runtime: str
    precision: str
    batch_size: int = Field(description="Images a call, for the latency")
    latency_ms: float = Field(description="Median of single calls, milliseconds")
    latency_ms_low: float
    latency_ms_high: float
    latency_ms_p95: float
    latency_ms_p99: float | None = Field(description="null under 500 calls")
    latency_ms_spread: float = Field(description="Interquartile range divided by the median")
    latency_relative_error: float = Field(description="Standard error of the median divided by it")
    num_samples: int = Field(description="Calls timed")
    stopped_by: str
    throughput: float = Field(description="Images a second")
    throughput_batch_size: int
    peak_memory_mb: float = Field(description="MB of 10^6 bytes")
    model_mb: float = Field(description="Weights, MB of 10^6 bytes")
    build_seconds: float
    first_call_ms: float
    seconds: float
    flags: list[str] = Field(description="Empty when nothing disturbed the figures")
    software: dict[str, str] = Field(default_factory=dict, description="Versions, by name")
    cache: str = Field("hot", description="hot, or cold: emptied before each call")
    device_ms: float | None = Field(None, description="Of the same call by the device's clock; null on a CPU")
    energy_mj: float | None = Field(None, description="An image, less idle; null where it was not counted")
    energy_source: str = Field("", description="What counted energy, or why nothing did")
    conditions: dict[str, Any] = Field(
        default_factory=dict, description="State of the device, by name with unit"
    )
    time: Time
    cached: bool = Field(description="Taken over from an earlier measurement, at `time`")
    age_seconds: int | None = Field(description="Since `time`, of one that was taken over; else null")


class Evaluation(Strict):
    """Weights scored on one split."""

    split: str
    epoch: int
    num_images: int
    accuracy: float = Field(description="Fraction of 1")
    accuracy_low: float
    accuracy_high: float
    loss: float
    class_names: list[str]
    recall: list[float | None] = Field(
        description="By class, in the order of class_names; null without images"
    )
    recall_low: list[float | None] | None = Field(None, description="95% Wilson; null where not stored")
    recall_high: list[float | None] | None = None
    class_counts: list[int] | None = Field(None, description="Images of each class")
    calibration_error: float | None = Field(
        None, description="Expected calibration error over 15 bins, a fraction of 1"
    )
    confusions: list[tuple[int, int, int]] | None = Field(
        None,
        description="Class, the class that it was taken for, images; places in class_names, the most frequent first",
    )
    time: Time


class Attempt(Strict):
    """One try at a job of a candidate."""

    job: int
    kind: str
    attempt: int
    state: str = Field(description="running, done, failed, lost or fenced")
    reason: str | None
    detail: str | None = Field(description="The traceback, where there is one")
    host: str | None
    pid: int | None
    started: Time
    ended: Time | None
    seconds: float | None = Field(description="Busy time that the worker reported")


class Artifact(Strict):
    kind: str
    path: str
    epoch: int | None
    num_bytes: int


class Trial(Strict):
    """One way that a probe tried to execute a training."""

    execution: str
    step_ms: list[float] = Field(
        description="Median of a step, of each architecture; empty where it was not timed"
    )
    compile_seconds: float | None
    out: str | None = Field(description="Why it was left out")


class Execution(Strict):
    """How the networks of a family are trained, decided once a search."""

    precision: str = Field(description="fp32 or bf16")
    memory_format: str = Field(description="contiguous or channels_last")
    compiled: bool
    threads: int = Field(description="Of the CPU; 0 for torch's own, as on a GPU")
    words: str
    why: str
    speed: float | None = Field(
        description="As a multiple of the plainest way's; null where nothing was probed"
    )
    seconds: float | None = Field(description="That the probe took")
    probed_on: int | None = Field(description="Number of the candidate")
    device_id: str | None
    trials: list[Trial]


class Candidate(Point):
    """Everything that is known of one candidate or baseline."""

    search: str
    created: Time
    ended: Time | None
    point: dict[str, Any] = Field(description="The choice made in every dimension of its family")
    module: str | None = Field(description="Of the user's own, to import before timm builds it; null without")
    analysis: dict[str, Any] = Field(description="Computed from the architecture: params, flops, tokens, ...")
    epochs_in_full: int
    by_rung: dict[str, dict[str, float]] = Field(description="Epochs at a rung -> quantity -> value")
    measured_how: dict[str, str]
    epochs: list[Epoch]
    evaluations: list[Evaluation]
    measurements: list[Measurement]
    attempts: list[Attempt]
    artifacts: list[Artifact]
    teacher: Teacher | None
    weights: str | None = Field(
        description="The pretrained ones that its training began from, whole or in parts; null for fresh ones"
    )
    execution: Execution | None
    screen: str | None = Field(description="What was predicted, if it was measured to check that; else null")


class Event(Strict):
    id: int
    time: Time
    kind: str
    candidate: int | None = Field(description="The number of the one that it is about")
    text: str


class Events(Strict):
    """Some of the events of a search, in order."""

    events: list[Event]
    next: int | None = Field(description="`after` for the next page; null at the end")


class Submitted(Strict):
    """A search that was put into the queue."""

    name: str
    priority: int
    window: str | None
    before: int = Field(description="How many are run before it, as things stand")
    has_runner: bool = Field(description="Whether anybody works the queue off now")


class Waiting(Strict):
    """The queue."""

    has_runner: bool = Field(description="Whether anybody works it off now")
    queue: list[Place] = Field(description="By priority, then the oldest first")


class Told(Strict):
    told: str = Field(description="What becomes of the search, in a line")


class Revision(Strict):
    """Data of a `changed` event."""

    revision: str = Field(description="What there is now; also the event's id, for `since` and Last-Event-ID")
    searches: list[str] = Field(description="Names of the searches that have changed")


class Error(Strict):
    detail: str = Field(description="What was wrong, in a line or two")
