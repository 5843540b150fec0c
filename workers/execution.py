"""How a training is executed, and what a probe found of the ways to do it. Standard library only.

It decides how fast a training is. Results differ by rounding alone, which in bf16 is coarse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from spaces.spec import ArchSpec
from workers.settings import RecipeSettings

CHOICES = ("precision", "memory_format", "compile", "threads")
"""Settings of `training` that `auto` leaves to a probe."""


@dataclass(frozen=True)
class Execution:
    """precision: of the forward pass; `bf16` is torch's autocast, the weights stay fp32. memory_format: of images and
    of convolutions' weights. compiled: by torch.compile. threads: of the CPU; 0 leaves torch's own, as on a GPU."""

    precision: Literal["fp32", "bf16"] = "fp32"
    memory_format: Literal["contiguous", "channels_last"] = "contiguous"
    compiled: bool = False
    threads: int = 1

    @property
    def words(self) -> str:
        """`bf16, channels-last, compiled, 2 threads`."""
        parts = [self.precision, self.memory_format.replace("_", "-")]
        parts += ["compiled"] if self.compiled else []
        parts += [f"{self.threads} thread{'s' * (self.threads > 1)}"] if self.threads else []
        return ", ".join(parts)


@dataclass(frozen=True)
class ProbeTask:
    """What a probe job has to know beside its architecture. epochs: of the shortest training that its choice will be
    used for. epochs_in_all: of all trainings that are to be expected. cores: of the CPU, that the worker has to itself.
    beside: other architectures that the choice will be used for."""

    epochs: int
    epochs_in_all: float
    cores: int = 1
    beside: tuple[ArchSpec, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"beside": [spec.to_dict() for spec in self.beside]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ProbeTask:
        return cls(**{**values, "beside": tuple(map(ArchSpec.from_dict, values["beside"]))})


@dataclass(frozen=True)
class Trial:
    """One way that was tried. step_ms: median of a training step, of each architecture; empty where it did not come to
    that. compile_seconds: what compiling took. out: why it was left out."""

    execution: Execution
    step_ms: tuple[float, ...] = ()
    compile_seconds: float | None = None
    out: str | None = None


@dataclass(frozen=True)
class Probed:
    """What a probe chose. reference: what it was compared with: fp32, contiguous, eager and one thread, but for what is
    set. speed: of its steps, as a multiple of the reference's, where that architecture gained least; 1 for the
    reference. why: in a line. trials: all that was tried, the reference first. seconds: that it took."""

    execution: Execution
    reference: Execution
    speed: float
    why: str
    trials: tuple[Trial, ...]
    seconds: float

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Probed:
        trials = tuple(
            Trial(**{**each, "execution": Execution(**each["execution"]), "step_ms": tuple(each["step_ms"])})
            for each in values["trials"]
        )
        executions = {name: Execution(**values[name]) for name in ("execution", "reference")}
        return cls(**{**values, **executions, "trials": trials})


def reference(recipe: RecipeSettings) -> Execution:
    """What is set, and the plainest way of what is not."""
    plain = Execution()
    return Execution(
        precision=plain.precision if recipe.precision == "auto" else recipe.precision,
        memory_format=plain.memory_format if recipe.memory_format == "auto" else recipe.memory_format,
        compiled=recipe.compile == "on",
        threads=plain.threads if recipe.threads == "auto" else recipe.threads,
    )


def is_open(recipe: RecipeSettings, cores: int) -> bool:
    """Whether something is left to a probe. On one core, threads are not."""
    left = {name for name in CHOICES if getattr(recipe, name) == "auto"}
    return bool(left - {"threads"} if cores == 1 else left)
