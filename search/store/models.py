"""The tables, as SQLAlchemy typed models. Nothing outside `search.store` imports this module.

Times are UTC seconds since 1970. States are the words of `search.states`. JSON columns hold plain values.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

if TYPE_CHECKING:
    from search.lease import Owner


class Base(DeclarativeBase):
    metadata = MetaData(  # later migrations must be able to name what they change
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar = {dict[str, Any]: JSON, list[Any]: JSON}


class Leased:
    """The columns of a row that one process has at a time: which it is, and a counter that moves while it lives. See
    `search.lease`."""

    owner_host: Mapped[str | None] = mapped_column(Text)
    owner_boot: Mapped[str | None] = mapped_column(Text)
    owner_pid: Mapped[int | None]
    owner_started: Mapped[float | None]
    beat: Mapped[int] = mapped_column(BigInteger, default=0)
    beat_time: Mapped[float | None]

    def give(self, owner: Owner) -> None:
        """To a process that lives at this moment."""
        self.owner_host, self.owner_boot = owner.host, owner.boot
        self.owner_pid, self.owner_started = owner.pid, owner.started
        self.beat += 1
        self.beat_time = time.time()

    def take_away(self) -> None:
        self.owner_host = self.owner_boot = self.owner_pid = self.owner_started = None


class Search(Leased, Base):
    """One configured hunt, its lease included (owner_* and beat: who drives it, and a counter that moves)."""

    __tablename__ = "search"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(120), unique=True)
    state: Mapped[str] = mapped_column(String(20))
    config: Mapped[dict[str, Any]]
    created: Mapped[float]
    started: Mapped[float | None]
    ended: Mapped[float | None]
    deadline: Mapped[float | None]
    reason: Mapped[str | None] = mapped_column(Text)
    data: Mapped[dict[str, Any]]  # image_size, channels, num_classes, class_names, counts, digest, plugins
    artifacts: Mapped[str] = mapped_column(Text)
    device_id: Mapped[str | None] = mapped_column(Text)
    lease: Mapped[int] = mapped_column(default=0)  # grows with every driver that takes the search over


class Candidate(Base):
    """One ArchSpec in a search. Numbers start at 1; baselines have negative numbers and a name, a teacher 0 and one."""

    __tablename__ = "candidate"
    __table_args__ = (
        UniqueConstraint("search_id", "number"),
        UniqueConstraint("search_id", "role", "digest"),
        Index("ix_candidate_search_state", "search_id", "state"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    search_id: Mapped[int] = mapped_column(ForeignKey("search.id", ondelete="CASCADE"))
    number: Mapped[int]
    role: Mapped[str] = mapped_column(String(20))  # candidate | baseline | teacher
    name: Mapped[str | None] = mapped_column(String(120))
    family: Mapped[str] = mapped_column(String(60))
    point: Mapped[dict[str, Any]]
    spec: Mapped[dict[str, Any]]
    digest: Mapped[str] = mapped_column(String(32))
    analysis: Mapped[dict[str, Any]]  # params, flops, tokens, activations
    state: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str | None] = mapped_column(Text)
    rung: Mapped[int | None]  # highest rung completed
    epoch: Mapped[int] = mapped_column(default=0)  # epochs completed at that rung
    measured: Mapped[dict[str, Any]]  # quantity -> value, best knowledge; see values.py of the write side
    intervals: Mapped[dict[str, Any]]  # quantity -> [low, high]
    by_rung: Mapped[dict[str, Any]]  # rung -> {quantity: value}
    trial: Mapped[int | None]  # Optuna's trial number; null for baselines
    told: Mapped[bool] = mapped_column(default=False)
    created: Mapped[float]
    ended: Mapped[float | None]


class JobRow(Base):
    """One piece of work on one candidate."""

    __tablename__ = "job"
    __table_args__ = (Index("ix_job_search_state", "search_id", "state"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    search_id: Mapped[int] = mapped_column(ForeignKey("search.id", ondelete="CASCADE"))
    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidate.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(20))
    rung: Mapped[int | None]
    first_epoch: Mapped[int] = mapped_column(default=0)
    last_epoch: Mapped[int] = mapped_column(default=0)
    state: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str | None] = mapped_column(Text)
    created: Mapped[float]
    ended: Mapped[float | None]


class Attempt(Base):
    """One try at a job. (job, number, lease) is what a report must carry to be believed."""

    __tablename__ = "attempt"
    __table_args__ = (UniqueConstraint("job_id", "number"), Index("ix_attempt_state", "state"))
    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"))
    number: Mapped[int]
    lease: Mapped[int]
    state: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str | None] = mapped_column(Text)
    detail: Mapped[str | None] = mapped_column(Text)
    host: Mapped[str | None] = mapped_column(Text)
    pid: Mapped[int | None]
    device_id: Mapped[str | None] = mapped_column(Text)
    started: Mapped[float]
    ended: Mapped[float | None]
    seconds: Mapped[float | None]  # busy time that the worker itself reports


class Epoch(Base):
    """One epoch of one attempt; a candidate's are those of its done attempts, or of the running one."""

    __tablename__ = "epoch"
    __table_args__ = (
        UniqueConstraint("attempt_id", "epoch"),
        Index("ix_epoch_candidate", "candidate_id", "epoch"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidate.id", ondelete="CASCADE"))
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempt.id", ondelete="CASCADE"))
    epoch: Mapped[int]
    train_loss: Mapped[float]
    val_loss: Mapped[float]
    accuracy: Mapped[float]
    accuracy_low: Mapped[float]
    accuracy_high: Mapped[float]
    learning_rate: Mapped[float]
    seconds: Mapped[float]
    pause_seconds: Mapped[float]
    time: Mapped[float]


class MeasurementRow(Base):
    """One measurement under its conditions; shared by searches through the cache key columns."""

    __tablename__ = "measurement"
    __table_args__ = (
        Index(
            "ix_measurement_key",
            "digest",
            "device_id",
            "threads",
            "runtime",
            "precision",
            "batch_size",
            "protocol",
        ),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    search_id: Mapped[int | None] = mapped_column(ForeignKey("search.id", ondelete="SET NULL"))
    candidate_id: Mapped[int | None] = mapped_column(
        ForeignKey("candidate.id", ondelete="SET NULL"), index=True
    )
    attempt_id: Mapped[int | None] = mapped_column(ForeignKey("attempt.id", ondelete="SET NULL"))
    source_id: Mapped[int | None] = mapped_column(
        ForeignKey("measurement.id", ondelete="SET NULL")
    )  # cached from
    digest: Mapped[str] = mapped_column(String(32))
    protocol: Mapped[str] = mapped_column(String(40))
    device_id: Mapped[str] = mapped_column(String(200))
    threads: Mapped[int]
    runtime: Mapped[str] = mapped_column(String(40))
    precision: Mapped[str] = mapped_column(String(20))
    batch_size: Mapped[int]
    figures: Mapped[dict[str, Any]]  # workers.job.Measurement as JSON
    samples: Mapped[bytes | None] = mapped_column(LargeBinary)
    time: Mapped[float]


class EvaluationRow(Base):
    """A trained candidate scored on one split."""

    __tablename__ = "evaluation"
    id: Mapped[int] = mapped_column(primary_key=True)
    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidate.id", ondelete="CASCADE"), index=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempt.id", ondelete="CASCADE"))
    split: Mapped[str] = mapped_column(String(20))
    epoch: Mapped[int]
    figures: Mapped[dict[str, Any]]  # workers.job.Evaluation as JSON
    time: Mapped[float]


class Artifact(Base):
    """A file below the search's artifacts folder."""

    __tablename__ = "artifact"
    id: Mapped[int] = mapped_column(primary_key=True)
    search_id: Mapped[int] = mapped_column(ForeignKey("search.id", ondelete="CASCADE"), index=True)
    candidate_id: Mapped[int | None] = mapped_column(
        ForeignKey("candidate.id", ondelete="CASCADE"), index=True
    )
    attempt_id: Mapped[int | None] = mapped_column(ForeignKey("attempt.id", ondelete="SET NULL"))
    kind: Mapped[str] = mapped_column(String(20))  # checkpoint | removed (to make room) | report
    path: Mapped[str] = mapped_column(Text)
    epoch: Mapped[int | None]
    sha256: Mapped[str] = mapped_column(String(64))
    num_bytes: Mapped[int] = mapped_column(BigInteger)
    time: Mapped[float]


class Event(Base):
    """What happened, in words: shown by `status` and the report."""

    __tablename__ = "event"
    id: Mapped[int] = mapped_column(primary_key=True)
    search_id: Mapped[int | None] = mapped_column(ForeignKey("search.id", ondelete="CASCADE"), index=True)
    time: Mapped[float]
    kind: Mapped[str] = mapped_column(String(40))
    candidate: Mapped[int | None]
    text: Mapped[str] = mapped_column(Text)


class Request(Base):
    """What somebody asks of a search's driver: pause, resume, stop, a note. Anyone may append. done: when it was
    settled."""

    __tablename__ = "request"
    id: Mapped[int] = mapped_column(primary_key=True)
    search_id: Mapped[int] = mapped_column(ForeignKey("search.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(40))
    payload: Mapped[dict[str, Any]]  # now, by, text
    created: Mapped[float]
    done: Mapped[float | None]


class Queue(Leased, Base):
    """Searches that wait for a runner, or are being run by one: owner_* and beat are the runner's.

    search_id: of the search, once it has begun. claim: grows with every runner that takes the row, so that what an
    earlier one has started can be told apart. held: not to be run before somebody asks for it.
    """

    __tablename__ = "queue"
    __table_args__ = (Index("ix_queue_state", "state"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(120))
    search_id: Mapped[int | None] = mapped_column(ForeignKey("search.id", ondelete="CASCADE"), index=True)
    config: Mapped[dict[str, Any]]  # of a search that has not begun
    plugins: Mapped[dict[str, Any]]  # modules: those that were allowed as it was submitted
    priority: Mapped[int]
    window: Mapped[str | None] = mapped_column(String(40))
    state: Mapped[str] = mapped_column(String(20))
    held: Mapped[bool] = mapped_column(default=False)
    reason: Mapped[str | None] = mapped_column(Text)
    created: Mapped[float]
    started: Mapped[float | None]  # when a runner took it last
    ended: Mapped[float | None]
    failures: Mapped[int] = mapped_column(default=0)  # in a row
    not_before: Mapped[float | None]
    claim: Mapped[int] = mapped_column(default=0)


class Runner(Base):
    """A process that works the queue off. It takes its row away as it ends."""

    __tablename__ = "runner"
    id: Mapped[int] = mapped_column(primary_key=True)
    owner_host: Mapped[str] = mapped_column(Text)
    owner_boot: Mapped[str] = mapped_column(Text)
    owner_pid: Mapped[int]
    owner_started: Mapped[float]
    beat: Mapped[int] = mapped_column(BigInteger, default=0)
    beat_time: Mapped[float]


class Writer(Base):
    """Counts the writes of one thread of one process, so that none is done twice; see `search.store.engine`."""

    __tablename__ = "writer"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger)
    time: Mapped[float]
