"""How trainings are executed: decided for each family of a search before its first training, and then kept.

What the settings leave to `auto` is chosen by a probe job on the first network of the family that is to be trained;
the others of that family wait for it. Nothing is lost by a probe that fails: the family is then trained in the plainest
way.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from search import executions
from search.config import SearchConfig
from search.executions import Choice
from search.plan import Plan
from search.rungs import REDUCTION
from search.states import JobState
from search.store.models import Candidate, JobRow, Search
from search.store.write import candidates, jobs, results
from spaces.spec import ArchSpec
from workers.device import num_cores
from workers.execution import Execution, ProbeTask, is_open, reference
from workers.job import Kind, Outcome
from workers.settings import JobSettings, RecipeSettings

_DRAWS = 24
_CANDIDATES = 50
"""That a probe's choice is counted on for, at most."""


@dataclass(frozen=True)
class Prober:
    """Of one driver."""

    plan: Plan
    search_id: int

    def chosen(self, session: Session, row: Candidate) -> Execution | None:
        """How a network is trained; None where that has to be probed first."""
        found = executions.choices(self._data(session)).get(_key(row))
        if found is None and not is_open(self._recipe(row), worker_cores(self.plan.config)):
            found = Choice(reference(self._recipe(row)), "as it is set")
            self._keep(session, row, found)
        return None if found is None else found.execution

    def probe(self, session: Session, row: Candidate) -> JobRow | None:
        """Adds the probe job of a network's family; None where there is one already."""
        return None if self.is_under_way(session, row) else jobs.add(session, row, Kind.PROBE)

    def is_under_way(self, session: Session, row: Candidate) -> bool:
        """Whether the probe of a network's family waits or runs."""
        query = (
            select(Candidate)
            .join(JobRow, JobRow.candidate_id == Candidate.id)
            .where(JobRow.search_id == self.search_id, JobRow.kind == Kind.PROBE)
            .where(JobRow.state.in_([JobState.PENDING, JobState.RUNNING]))
        )
        return any(_key(other) == _key(row) for other in session.scalars(query))

    def task(self, row: Candidate) -> ProbeTask:
        """What the probe of a network is for."""
        plan = self.plan
        if row.number > 0:
            asked = plan.config.search.max_candidates
            number = min(asked, _CANDIDATES) if isinstance(asked, int) else _CANDIDATES
            in_all = max(1.0, number / len(plan.space.families)) * _expected_epochs(plan.rungs)
            return ProbeTask(plan.rungs[0], in_all, worker_cores(self.plan.config), self._beside(row))
        is_teacher = row.number == candidates.TEACHER and plan.teacher is not None
        epochs = plan.teacher.epochs if is_teacher and plan.teacher else plan.rungs[-1]
        return ProbeTask(epochs, epochs, worker_cores(self.plan.config))

    def _beside(self, row: Candidate) -> tuple[ArchSpec, ...]:
        """Two others of a candidate's family, at the lower and upper quartile of its FLOPs: what is fast for one size
        may be slow for another."""
        space, rng = self.plan.space, random.Random(f"{self.plan.config.search.seed}/{row.family}")
        specs = [space.spec(space.sample(rng, row.family)) for _ in range(_DRAWS)]
        drawn = {spec.digest: spec for spec in specs}
        drawn.pop(row.digest, None)
        sized = sorted(
            drawn.values(), key=lambda spec: self.plan.closed_form(row.family, spec).get("flops", 0.0)
        )
        return tuple(sized[place] for place in sorted({len(sized) // 4, 3 * len(sized) // 4}) if sized)

    def settings(self, row: Candidate) -> JobSettings:
        """Those that the network is trained by."""
        return replace(self.plan.settings, recipe=self._recipe(row))

    def keep(self, session: Session, row: Candidate, outcome: Outcome) -> str:
        """Keeps what a probe found; returns it in words."""
        probed = outcome.probed
        assert probed is not None
        choice = Choice(probed.execution, probed.why, probed, row.number, outcome.device_id)
        return self._keep(session, row, choice)

    def keep_failed(self, session: Session, row: Candidate, reason: str) -> str:
        """After a probe that failed for good."""
        return self._keep(session, row, Choice(reference(self._recipe(row)), f"the probe failed: {reason}"))

    def _keep(self, session: Session, row: Candidate, choice: Choice) -> str:
        search = session.get_one(Search, self.search_id)
        kept = {**search.data.get(executions.RECORD, {}), _key(row): choice.to_dict()}
        search.data = {**search.data, executions.RECORD: kept}
        text = f"{_key(row)} is trained in {choice.words}"
        results.add_event(session, self.search_id, "execution", text, row.number)
        return text

    def _data(self, session: Session) -> dict:
        return session.get_one(Search, self.search_id).data

    def _recipe(self, row: Candidate) -> RecipeSettings:
        recipe = self.plan.settings.recipe
        if row.number == candidates.TEACHER and recipe.distillation is not None:
            return recipe.distillation.of_teacher(recipe)
        return recipe


def needs_execution(row: JobRow) -> bool:
    """Whether a job trains, and so has to know how."""
    return row.kind == Kind.TRAIN or (row.kind == Kind.TEACH and row.last_epoch > 0)


def _expected_epochs(rungs: Sequence[int]) -> float:
    """Of one candidate, when of those that reach a rung one in `REDUCTION` goes on."""
    steps = zip(rungs, (0, *rungs), strict=False)
    return sum((to - begun) / REDUCTION**number for number, (to, begun) in enumerate(steps))


def worker_cores(config: SearchConfig) -> int:
    """Of this machine's CPU, for each worker: with `auto`, one."""
    workers = config.search.workers
    return max(1, num_cores() // workers) if isinstance(workers, int) else 1


def _key(row: Candidate) -> str:
    return executions.key(row.number, row.family, row.spec["model"])
