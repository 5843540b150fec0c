"""The Optuna study of a search: asked for the next point, told the truth about what became of it.

`waiting` and unfinished candidates stay RUNNING there; `finished` is told with values and constraints, `rejected`
and `stopped` as PRUNED, `failed` as FAIL. Each ask is seeded by (seed, candidate number, try), so that a resumed
search proposes what it would have proposed.
"""

from __future__ import annotations

import hashlib
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from search import hints
from search import sampler as auto
from search.errors import UserError
from search.objectives import Quantity
from search.sampler import Exhausted, Known
from search.states import CandidateState
from spaces.dims import Choice, Dimension, IntRange, Point
from spaces.registry import Space
from spaces.spec import ArchSpec

_TRIES = 100
_PRUNED = (CandidateState.REJECTED, CandidateState.STOPPED)


def open_storage(url: str, engine_kwargs: Mapping[str, Any]) -> optuna.storages.RDBStorage:
    """Optuna's own tables in a database, made where they are missing. Raises UserError where that cannot be."""
    with _storage_trouble():
        return optuna.storages.RDBStorage(url, engine_kwargs=dict(engine_kwargs))


@contextmanager
def _storage_trouble() -> Iterator[None]:
    """What Optuna's storage raises, a full disk say, as a UserError."""
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        reason = " ".join(str(getattr(error.__cause__ or error, "orig", error)).split())[:200]
        raise UserError(
            f"Optuna's tables in the database cannot be written: {reason}; mend that, then: "
            f"{hints.command('resume', 'NAME')}"
        ) from error


@dataclass(frozen=True)
class Proposal:
    """A point that the search has not tried, and the Optuna trial that it came from."""

    point: Point
    spec: ArchSpec
    trial: int


class Study:
    """One Optuna study beside the search's own tables.

    sampler: `auto`, or one of Optuna's by name: `random`, `tpe`, `nsga2`, `gp`.
    """

    def __init__(
        self,
        storage: optuna.storages.BaseStorage,
        name: str,
        space: Space,
        objectives: Sequence[Quantity],
        sampler: str,
        seed: int,
    ) -> None:
        self._storage = storage
        self._space = space
        self._maximise = [objective.maximise for objective in objectives]
        self._sampler = sampler
        self._seed = seed
        with _storage_trouble():
            self._study = optuna.create_study(
                study_name=name,
                storage=storage,
                directions=["maximize" if maximise else "minimize" for maximise in self._maximise],
                load_if_exists=True,
                sampler=optuna.samplers.RandomSampler(),
            )

    @_storage_trouble()
    def ask(
        self,
        number: int,
        known: Sequence[Known],
        taken: Set[str],
        leaves_out: Callable[[Point, ArchSpec, int], bool] | None = None,
    ) -> Proposal:
        """A proposal for candidate `number` whose digest is not in `taken`.

        leaves_out: told a point, its architecture and a seed of its own; whether another is to be drawn. It is not
        obeyed where nothing else is left.
        Raises Exhausted when the space holds nothing new. Points that the rules forbid, repeats and what is left out
        are told FAIL and asked for again; after some tries a point is drawn as `auto` would, so that no sampler gets
        stuck.
        """
        avoided = set(taken)
        for attempt in range(_TRIES + 1):
            rng = random.Random(derive_seed(self._seed, number, attempt))
            is_last = attempt == _TRIES
            self._study.sampler = self._make_sampler(attempt, rng, known, taken if is_last else avoided)
            trial = self._study.ask()
            try:
                point = suggest(trial, self._space)
            except Exhausted:
                self._study.tell(trial, state=TrialState.FAIL)
                if avoided == taken:
                    raise
                avoided, leaves_out = set(taken), None
                continue
            if self._space.illegal(point) is None:
                spec = self._space.spec(point)
                seed = derive_seed(self._seed, number, attempt, 1)
                if spec.digest not in (taken if is_last else avoided):
                    if is_last or leaves_out is None or not leaves_out(point, spec, seed):
                        return Proposal(point, spec, trial.number)
                    avoided.add(spec.digest)
            self._study.tell(trial, state=TrialState.FAIL)
        raise Exhausted

    @_storage_trouble()
    def ask_again(self, point: Point) -> int:
        """A new running trial for a point that an earlier trial was told PRUNED for; returns its number."""
        self._study.sampler = WholePointSampler(self._space, lambda: point)
        trial = self._study.ask()
        suggest(trial, self._space)
        return trial.number

    @_storage_trouble()
    def tell(
        self,
        trial: int,
        state: CandidateState,
        values: Sequence[float] | None,
        constraints: Mapping[str, float],
    ) -> None:
        """Tells Optuna how a candidate ended. Telling it again changes nothing.

        constraints: name -> value ÷ limit − 1 (its negative for lower bounds); positive means violated.
        """
        study_id = self._storage.get_study_id_from_name(self._study.study_name)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, trial)
        frozen = self._storage.get_trial(trial_id)
        if frozen.state.is_finished():
            return
        if constraints:
            self._study.sampler = optuna.samplers.RandomSampler()
            handle = optuna.trial.Trial(self._study, trial_id)
            for name, value in constraints.items():
                if name not in frozen.constraints:
                    handle.set_constraint(name, value)
        if state == CandidateState.FINISHED:
            self._study.tell(trial, values=list(values or ()))
        else:
            told = TrialState.PRUNED if state in _PRUNED else TrialState.FAIL
            self._study.tell(trial, state=told)

    @_storage_trouble()
    def fail_orphans(self, known_trials: Set[int]) -> int:
        """Tells FAIL for running trials that no candidate stands for: asked, then the driver died. Returns how many."""
        running = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING))
        orphans = [trial.number for trial in running if trial.number not in known_trials]
        for number in orphans:
            self._study.tell(number, state=TrialState.FAIL)
        return len(orphans)

    def _make_sampler(
        self, attempt: int, rng: random.Random, known: Sequence[Known], taken: Set[str]
    ) -> optuna.samplers.BaseSampler:
        seed = rng.randrange(2**31)
        if self._sampler == "auto" or attempt == _TRIES:
            return WholePointSampler(
                self._space, lambda: auto.propose(self._space, known, self._maximise, taken, rng)
            )
        if self._sampler == "tpe":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                return optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
        if self._sampler == "nsga2":
            return optuna.samplers.NSGAIISampler(seed=seed)
        if self._sampler == "gp":
            return optuna.samplers.GPSampler(seed=seed, warn_independent_sampling=False)
        return optuna.samplers.RandomSampler(seed=seed)


class WholePointSampler(optuna.samplers.BaseSampler):
    """Hands one whole point to Optuna, dimension by dimension. A value outside its dimension raises."""

    def __init__(self, space: Space, propose: Callable[[], Point]) -> None:
        self._space = space
        self._propose = propose
        self._point: Point | None = None

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        self._point = self._propose()
        return {
            dimension.name: distribution(dimension)
            for dimension in self._space.dimensions
            if dimension.name in self._point
        }

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return dict(self._point or {})

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        raise ValueError(f"{param_name} is no part of the proposed point {self._point}")


def suggest(trial: optuna.Trial, space: Space) -> Point:
    """Asks Optuna for the active dimensions, one by one, in the space's order."""
    point: Point = {}
    for dimension in space.dimensions:
        if dimension.active(point):
            point[dimension.name] = _suggest_one(trial, dimension)
    return point


def distribution(dimension: Dimension) -> BaseDistribution:
    """The Optuna distribution of a dimension: the same whatever the other values are."""
    domain = dimension.domain
    if isinstance(domain, Choice):
        return optuna.distributions.CategoricalDistribution(domain.values)
    if isinstance(domain, IntRange):
        return optuna.distributions.IntDistribution(domain.low, domain.high, step=domain.step)
    return optuna.distributions.FloatDistribution(domain.low, domain.high, step=domain.step)


def _suggest_one(trial: optuna.Trial, dimension: Dimension) -> str | int | float | bool:
    domain = dimension.domain
    if isinstance(domain, Choice):
        value = trial.suggest_categorical(dimension.name, domain.values)
        assert value is not None
        return value
    if isinstance(domain, IntRange):
        return trial.suggest_int(dimension.name, domain.low, domain.high, step=domain.step)
    return trial.suggest_float(dimension.name, domain.low, domain.high, step=domain.step)


def derive_seed(*parts: int) -> int:
    """A seed of 63 bits from several numbers, equal on every machine."""
    text = ",".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
