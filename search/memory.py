"""What a driver's decisions stand on: the candidates and baselines as their rows say, read back after every change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from search import rungs
from search.objectives import Limit, resolve
from search.plan import Plan
from search.predictor import features
from search.sampler import Known
from search.screening import Example
from search.states import CandidateState
from search.store.models import Candidate
from search.store.write.candidates import TEACHER
from workers.job import Further
from workers.settings import Precision, Runtime


@dataclass(frozen=True)
class Seen:
    """What decisions need of a candidate. example: of what its kind costs."""

    state: CandidateState
    digest: str
    known: Known
    standing: rungs.Standing
    example: Example


@dataclass
class Memory:
    """seen: by candidate number. baselines: name -> what was measured of it so far; baseline_intervals: the 95%
    intervals of that. states: of both and of the teacher, by number."""

    plan: Plan
    seen: dict[int, Seen] = field(default_factory=dict)
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)
    baseline_intervals: dict[str, dict[str, Sequence[float]]] = field(default_factory=dict)
    states: dict[int, CandidateState] = field(default_factory=dict)

    def look_at(self, row: Candidate) -> None:
        """Takes in a candidate's or baseline's row."""
        self.states[row.number] = CandidateState(row.state)
        if row.number == TEACHER:
            return
        if row.name is not None:
            self.baselines[row.name] = dict(row.measured)
            self.baseline_intervals[row.name] = dict(row.intervals)
            return
        scores = {
            int(rung): [float((row.measured | values)[q.name]) for q in self.plan.objectives]
            for rung, values in row.by_rung.items()
        }
        state = CandidateState(row.state)
        self.seen[row.number] = Seen(
            state=state,
            digest=row.digest,
            known=Known(row.number, row.point, scores),
            standing=rungs.standing(row.number, state, row.rung, scores),
            example=Example(
                features(row.analysis, row.spec["image_size"], row.family, self.plan.space.families),
                dict(row.measured),
            ),
        )

    @property
    def waits_for_teacher(self) -> bool:
        """Whether what learns from the teacher cannot be trained yet."""
        return TEACHER in self.states and self.states[TEACHER] != CandidateState.FINISHED

    def is_full(self, exhausted: bool) -> bool:
        """Whether nothing more will be proposed. exhausted: there is nothing left to."""
        return exhausted or len(self.seen) >= self.plan.config.search.most_candidates

    @property
    def next_number(self) -> int:
        return max(self.seen, default=0) + 1

    @property
    def taken(self) -> set[str]:
        """Digests of the architectures that the search has."""
        return {seen.digest for seen in self.seen.values()}

    @property
    def known(self) -> list[Known]:
        return [seen.known for seen in self.seen.values()]

    @property
    def standings(self) -> list[rungs.Standing]:
        return [seen.standing for seen in self.seen.values()]

    def why_failed(self, row: Candidate) -> str | None:
        """Why the search cannot go on: its teacher failed, or a baseline that a limit needs; None where it can."""
        if row.state != CandidateState.FAILED or row.name is None:
            return None
        if row.number == TEACHER:
            return f"teacher {row.name!r} failed, and candidates were to learn from it: {row.reason}"
        missing = self.missing(row.name)
        if not missing:
            return None
        return f"baseline {row.name!r} failed, and a constraint needs its {missing[0]}: {row.reason}"

    def missing(self, baseline: str) -> list[str]:
        """Quantities that a relative limit needs of a baseline and that are not known yet."""
        known = self.baselines.get(baseline, {})
        return [c.name for c in self.plan.constraints if c.baseline == baseline and c.name not in known]

    @property
    def waits_for_baseline(self) -> bool:
        """Whether a relative limit has no number yet."""
        return any(self.missing(c.baseline) for c in self.plan.constraints if c.baseline is not None)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Constraints as numbers; none as long as one has no number yet."""
        if self.waits_for_baseline:
            return ()
        return resolve(self.plan.constraints, self.baselines, self.baseline_intervals)

    @property
    def latency_limits(self) -> tuple[float, ...]:
        """Upper bounds, ms, of the latency in `cost.runtime`."""
        cost = self.plan.settings.cost
        plain = (limit.value for limit in self.limits if limit.name == "latency_ms")
        return (*plain, *self._latency_limits_in((cost.runtime, cost.used_precision)))

    @property
    def further_runtimes(self) -> tuple[Further, ...]:
        """To be measured in beside `cost.runtime`."""
        return tuple(Further(*key, self._latency_limits_in(key)) for key in self.plan.further_runtimes)

    def _latency_limits_in(self, key: tuple[Runtime, Precision]) -> tuple[float, ...]:
        names = {f"latency_ms{one.suffix}" for one in self.plan.named_runtimes if one.key == key}
        return tuple(limit.value for limit in self.limits if limit.name in names)
