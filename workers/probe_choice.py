"""Which of several ways to execute a training is chosen, by what a bench finds of them.

They are timed in rounds, each way in turn, so that what disturbs one round disturbs all. The fastest is taken where it
beats the reference by `MARGIN` for every architecture that is tried, and does so again in a second series. A way whose
loss is not finite, or not that of fp32 on the same batch and weights, is out. Compiling has to save more than it takes
within the shortest training that the choice is for.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from workers.errors import CandidateError
from workers.execution import Execution, ProbeTask, Trial
from workers.measure.statistics import summarise
from workers.settings import RecipeSettings

MARGIN = 1.05
"""How many times as fast as the reference a way has to be."""
SHARE = 0.05
"""Of the trainings that the choice is for, at most, that a probe takes."""
FEWEST_ROUNDS, MOST_ROUNDS = 4, 60
WARM_UP = 2
"""Steps that a way takes before it is timed, about."""
SHORTEST_TURN = 0.02
"""Seconds."""
DROPPED = 1.25
"""A way that takes so many times as long as the fastest, after a few rounds, is not timed any more."""
COMPILE_SECONDS = 60.0
COMPILE_GAIN = 0.4
"""Compiling is not even tried where it would not win if it took this long and saved this share, or where this long is
more than a probe may take."""


class Bench(Protocol):
    """What is compared: the architectures of a probe, by their places; the first one is the job's own."""

    @property
    def num_subjects(self) -> int: ...

    @property
    def steps_per_epoch(self) -> int: ...

    def why_out(self, way: Execution) -> str | None:
        """Why a way is out before it is timed; None where it is not."""
        ...

    def turn(self, way: Execution, subject: int, seconds: float = SHORTEST_TURN) -> float:
        """Milliseconds a step, of at least one and for `seconds` at least."""
        ...

    def compile(self, way: Execution) -> float:
        """Compiles the first architecture for it; the seconds that took. Raises RuntimeError or OSError."""
        ...


@dataclass(frozen=True)
class Chosen:
    best: Execution
    speed: float
    why: str
    trials: Sequence[Trial]


class Chooser:
    """Chooses, given a bench."""

    def __init__(
        self, bench: Bench, recipe: RecipeSettings, task: ProbeTask, no_compiler: str | None
    ) -> None:
        self._bench, self._recipe, self._task, self._no_compiler = bench, recipe, task, no_compiler
        self._trials: dict[Execution, Trial] = {}
        self._steps = bench.steps_per_epoch * task.epochs
        self._shortest = self._may_take = 0.0

    def choose(self, ways: Sequence[Execution]) -> Chosen:
        """ways: eager ones, the reference first. Raises CandidateError where the reference is out."""
        plain = ways[0]
        self._admit(plain)
        if reason := self._trials[plain].out:
            raise CandidateError(reason)
        seconds = [self._bench.turn(plain, subject, 0) / 1e3 for subject in range(self._bench.num_subjects)]
        self._shortest = seconds[0] * self._bench.steps_per_epoch * self._task.epochs
        in_all = statistics.fmean(seconds) * self._bench.steps_per_epoch * self._task.epochs_in_all
        self._may_take = SHARE * in_all
        round_seconds = sum(max(each, SHORTEST_TURN) for each in seconds)
        least = ((len(ways) + 2) * FEWEST_ROUNDS + WARM_UP * len(ways)) * round_seconds
        limit = max(least, min(self._recipe.probe_seconds, self._may_take))
        if len(ways) > 1 and least > self._may_take:
            why = f"comparing would take {least:.2g} s, more than {SHARE:.0%} of the {in_all:.3g} s that it is for"
            best, speed = plain, 1.0
        else:
            best, speed, why = self._fastest(ways, limit)
        if self._recipe.compile == "auto":
            best, speed, why = self._compiled(best, speed, why, limit)
        return Chosen(best, speed, why, list(self._trials.values()))

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
        if min(self._may_take, COMPILE_GAIN * self._shortest) < COMPILE_SECONDS:
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
