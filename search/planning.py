"""What a search will come to: forecast before it begins, from jobs like its own or from steps that are timed here, and
again once it has shown how long its own jobs take."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from search import foreseen
from search.forecast import Forecast, Shape, forecast
from search.lengths import Lengths
from search.memory import Memory
from search.plan import Plan
from search.schedule import Schedule
from search.states import CandidateState
from search.store.models import Search
from search.store.write import results
from spaces.space import FAMILY
from spaces.spec import ArchSpec
from workers.job import Job, Kind

FEWEST_TRAININGS = 8
"""Of its own, from which on a search forecasts itself."""
START_SECONDS = 10.0
"""Until the workers are there."""
_NETWORKS, _DRAWS = 6, 20
_USUAL_REJECTED = 0.25
"""Share that is rejected where limits are set and nothing is known yet."""


@dataclass(frozen=True)
class Timed:
    """What was timed of networks of the space, in seconds: measure, of a measurement of each; epoch, of training."""

    measure: tuple[float, ...]
    epoch: tuple[float, ...]


def before(plan: Plan, workers: int, deadline: float | None, timed: Timed, now: float) -> Forecast:
    """For a search that is to begin at `now` (UTC seconds). Raises ValueError where nothing ends it."""
    basis = f"{len(timed.epoch)} networks of the space, timed here for some steps of training, and their measurement"
    rejected = _USUAL_REJECTED if plan.constraints else 0.0
    epoch, measure = Lengths.about(timed.epoch), Lengths.about(timed.measure)
    fixed = len(plan.baselines) * (measure.seconds + plan.rungs[-1] * epoch.seconds)
    shape = _shape(plan, workers, None if deadline is None else deadline - now, rejected)
    teacher = plan.teacher.epochs if plan.teacher else 0
    return forecast(
        replace(
            shape,
            fixed_jobs=2 * len(plan.baselines) + (plan.teacher is not None),
            fixed_epochs=len(plan.baselines) * plan.rungs[-1] + teacher,
            fixed_seconds=fixed + teacher * epoch.seconds + START_SECONDS * workers,
        ),
        measure,
        epoch,
        basis,
        now,
    )


def foresee(session: Session, search: Search, memory: Memory, schedule: Schedule) -> str | None:
    """Keeps a search's forecast of itself, once, as soon as there is one; returns it in words."""
    if foreseen.of(search.data) or search.started is None:
        return None
    made = during(memory, schedule, search.started)
    if made is None:
        return None
    search.data = foreseen.added(search.data, made)
    text = f"foreseen: {foreseen.words(made)}"
    results.add_event(session, search.id, "forecast", text)
    return text


def during(memory: Memory, schedule: Schedule, started: float) -> Forecast | None:
    """From a search's own jobs; None while they are too few, and where nothing ends it. started: UTC seconds."""
    lengths = schedule.lengths
    trained = [past for past, _ in lengths.done if past.kind == Kind.TRAIN and past.candidate > 0]
    if len(trained) < FEWEST_TRAININGS:
        return None
    plan = memory.plan
    states = [seen.state for seen in memory.seen.values()]
    settled = [state for state in states if state != CandidateState.PROPOSED]
    rejected = settled.count(CandidateState.REJECTED) / max(1, len(settled))
    left = None if schedule.deadline is None else schedule.deadline - started
    shape = _shape(plan, schedule.workers, left, rejected)
    if math.inf == min(shape.most_candidates, shape.seconds, shape.epochs):
        return None
    fixed = [(past, seconds) for past, seconds in lengths.done if past.candidate <= 0]
    return forecast(
        replace(
            shape,
            fixed_jobs=len(fixed),
            fixed_epochs=sum(past.epochs for past, _ in fixed),
            fixed_seconds=sum(seconds for _, seconds in fixed) + START_SECONDS * schedule.workers,
        ),
        lengths.mean(Kind.MEASURE),
        lengths.mean(Kind.TRAIN),
        f"its first {len(trained)} trainings",
        schedule.clock.now(),
    )


def time_here(plan: Plan, tell: Callable[[str], None], seconds: float = 2.0) -> Timed:
    """Trains and measures a few networks of the space for a moment. seconds: of training steps, each.

    Raises UserError where one fails.
    """
    import torch

    from search.errors import UserError
    from workers.errors import CandidateError
    from workers.measure import protocol
    from workers.pace import seconds_an_epoch
    from workers.perform import training_device

    device = torch.device(training_device(plan.settings.cost).torch)
    measure, epoch = [], []
    for number, spec in enumerate(_drawn(plan, _NETWORKS), start=1):
        tell(f"timing network {number} of {_NETWORKS}")
        job = Job(0, 1, 0, Kind.TRAIN, plan.config.name, number, spec, plan.settings, "", 1, plan.rungs[-1])
        try:
            epoch.append(seconds_an_epoch(job, device, seconds))
            measure.append(protocol.measure(spec, plan.settings.cost).seconds)
        except CandidateError as error:
            raise UserError(f"{spec.model} with {dict(spec.args)}: {error}") from None
    return Timed(tuple(measure), tuple(epoch))


def _drawn(plan: Plan, count: int) -> list[ArchSpec]:
    """Networks of as many families as there are: the first of each, then the second, and so on."""
    draw = random.Random(plan.config.search.seed)
    turns: Counter[str] = Counter()
    ranked: list[tuple[int, ArchSpec]] = []
    for _ in range(_DRAWS * count):
        point = plan.space.sample(draw)
        family = str(point[FAMILY])
        turns[family] += 1
        ranked.append((turns[family], plan.space.spec(point)))
    ranked.sort(key=lambda pair: pair[0])
    return [spec for _, spec in ranked[:count]]


def _shape(plan: Plan, workers: int, seconds: float | None, rejected: float) -> Shape:
    limits = plan.config.budget
    allowed = [math.inf if seconds is None else seconds]
    allowed += [3600 * limits.hours] if limits.hours else []
    allowed += [3600 * limits.device_hours / workers] if limits.device_hours else []
    return Shape(
        rungs=plan.rungs,
        workers=workers,
        num_objectives=len(plan.objectives),
        rejected=rejected,
        most_candidates=min(plan.config.search.most_candidates, plan.space.size()),
        seconds=min(allowed),
        epochs=limits.epochs or math.inf,
    )
