"""The words for what a search, a candidate, a job and an attempt can be."""

from __future__ import annotations

from enum import StrEnum


class SearchState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DRAINING = "draining"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"  # never stored: its lease is dead, says the reader


class CandidateState(StrEnum):
    PROPOSED = "proposed"
    MEASURED = "measured"
    REJECTED = "rejected"
    TRAINING = "training"
    WAITING = "waiting"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


class JobState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AttemptState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    FENCED = "fenced"


class QueueState(StrEnum):
    """Of a row of the queue. ended: its search has, or it was taken out before that began. failed: it never began."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


TERMINAL_CANDIDATE = frozenset(
    {CandidateState.REJECTED, CandidateState.STOPPED, CandidateState.FINISHED, CandidateState.FAILED}
)
ACTIVE_QUEUE = (QueueState.WAITING, QueueState.RUNNING)
ENDED_SEARCH = frozenset({SearchState.FINISHED, SearchState.STOPPED, SearchState.FAILED})
REMOVED = "removed"
"""The kind of an artifact that was a checkpoint, and was removed to make room."""
