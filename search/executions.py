"""How the networks of a search are trained, as it keeps that: by family, decided once. Reads and words; no database.

It lies in the search's `data`, under `RECORD`: key -> {execution, why, probed, candidate, device_id}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from workers.execution import Execution, Probed, Trial

if TYPE_CHECKING:
    from search.store.read.rows import CandidateRow, SearchRow

RECORD = "executions"


@dataclass(frozen=True)
class Choice:
    """why: in a line. probed: what a probe found; None where none ran to its end. candidate: the number of the one that
    it was run on. device_id: where."""

    execution: Execution
    why: str
    probed: Probed | None = None
    candidate: int | None = None
    device_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Choice:
        probed = Probed.from_dict(values["probed"]) if values["probed"] else None
        return cls(**{**values, "execution": Execution(**values["execution"]), "probed": probed})

    @property
    def words(self) -> str:
        """`bf16, channels-last, 1 thread (1.34x the speed of fp32, contiguous, 1 thread; probed on #1)`."""
        where = ""
        if self.probed is not None:
            where = f"; probed on #{self.candidate}" if (self.candidate or 0) > 0 else "; probed"
        return f"{self.execution.words} ({self.why}{where})"

    @property
    def known(self) -> dict[str, Any]:
        """As `show --json` gives it. speed, trials, seconds: of the probe; null and empty where none ran to its end."""
        probed = self.probed
        trials = [] if probed is None else [_trial(each) for each in probed.trials]
        return asdict(self.execution) | {
            "words": self.words,
            "why": self.why,
            "speed": None if probed is None else probed.speed,
            "seconds": None if probed is None else probed.seconds,
            "probed_on": self.candidate,
            "device_id": self.device_id,
            "trials": trials,
        }


def _trial(trial: Trial) -> dict[str, Any]:
    words = trial.execution.words
    return asdict(trial) | {"execution": words, "step_ms": list(trial.step_ms)}


def trial_words(trial: Mapping[str, Any]) -> str:
    """Of one of `known`'s trials: `4.02 ms a step`, or why it was left out."""
    steps = " and ".join(f"{each:.3g}" for each in trial["step_ms"])
    parts = [f"{steps} ms a step"] if steps else []
    if trial["compile_seconds"] is not None:
        parts.append(f"compiled in {trial['compile_seconds']:.3g} s")
    return ", ".join(parts) or str(trial["out"] or "not timed")


def key(number: int, family: str, model: str) -> str:
    """What a network's choice is kept under: a candidate's family; a baseline's or teacher's entry point of timm."""
    return family if number > 0 else model


def choices(data: Mapping[str, Any]) -> dict[str, Choice]:
    """Those of a search, by their keys; none in one of before there was a choice. data: the search's."""
    return {name: Choice.from_dict(values) for name, values in data.get(RECORD, {}).items()}


def words(search: SearchRow) -> dict[str, str]:
    """How each family of a search is trained, baselines and teacher by their models; empty before that is known."""
    return {name: choice.words for name, choice in choices(search.data).items()}


def of(search: SearchRow, row: CandidateRow) -> Choice | None:
    """How a candidate, baseline or teacher is trained; None where that is not decided, or was not written down."""
    values = search.data.get(RECORD, {}).get(key(row.number, row.family, row.spec.model))
    return None if values is None else Choice.from_dict(values)
