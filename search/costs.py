"""Measured costs of candidates: taken over from before or asked for, kept, and what the gate says of them. Called
inside the driver's transactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from search import drifting, energy, gate
from search.objectives import Limit, resolve
from search.plan import Plan
from search.states import CandidateState
from search.store.models import Attempt, Candidate, MeasurementRow
from search.store.write import candidates, jobs, results
from workers.job import Kind, Measurement, Outcome

Baselines = Mapping[str, Mapping[str, float]]
"""Name -> what was measured of it."""


@dataclass(frozen=True)
class Costs:
    """Of one search. device_id: the one that measurements must come from."""

    plan: Plan
    search_id: int
    device_id: str

    def measure(self, session: Session, row: Candidate, baselines: Baselines) -> None:
        """Takes a figure measured before under the same conditions, or adds a job that measures."""
        sources = self._cached(session, row.digest)
        if not sources:
            jobs.add(session, row, Kind.MEASURE)
            return
        source, *further = sources
        if source.candidate_id is not None:
            twin = session.get_one(Candidate, source.candidate_id)
            candidates.learn(row, {k: v for k, v in twin.measured.items() if k == "params"}, {})
        measurement = results.as_measurement(source)
        results.add_measurement(session, row, measurement, None, source)
        others = [results.as_measurement(one) for one in further]
        for one, other in zip(further, others, strict=True):
            results.add_measurement(session, row, other, None, one)
        self._learn_named(row, measurement, *others)
        self._measured(session, row, measurement, baselines)

    def _cached(self, session: Session, digest: str) -> list[MeasurementRow]:
        """Figures of before in `cost.runtime` and in each further one; none where one lacks, or with
        `cost.again`."""
        key = self.plan.measurement_key
        found: list[MeasurementRow] = []
        if self.plan.settings.cost.again:
            return found
        keys = [key, *(key | {"runtime": at, "precision": of} for at, of in self.plan.further_runtimes)]
        for each in keys:
            needs = (energy.NAME,) if each is key and energy.is_wanted(self.plan) else ()
            source = results.cached_measurement(
                session, digest, device_id=self.device_id, needs=needs, **each
            )
            if source is None:
                return []
            found.append(source)
        return found

    def _learn_named(self, row: Candidate, *measurements: Measurement) -> None:
        candidates.learn(row, *gate.named_values(self.plan.named_runtimes, measurements))

    def keep(
        self,
        session: Session,
        candidate: Candidate,
        attempt: Attempt,
        outcome: Outcome,
        baselines: Baselines,
    ) -> None:
        """Keeps what a job has measured."""
        assert outcome.measurement is not None
        results.add_measurement(session, candidate, outcome.measurement, attempt)
        for further in outcome.further:
            results.add_measurement(session, candidate, further, attempt)
        self._learn_named(candidate, outcome.measurement, *outcome.further)
        if "params" in outcome.notes:
            candidates.learn(candidate, {"params": float(outcome.notes["params"])}, {})
        if candidate.state == CandidateState.PROPOSED:
            self._measured(session, candidate, outcome.measurement, baselines)
        else:
            drifting.keep_again(session, candidate, outcome.measurement, self._limits(session, baselines))

    def _measured(
        self,
        session: Session,
        row: Candidate,
        measurement: Measurement,
        baselines: Baselines,
    ) -> None:
        """Keeps the figures and passes the gate: rejected, or on to its first training."""
        candidates.learn(row, *gate.measured_values(measurement))
        lacking = energy.lacking(self.plan, row.measured, measurement.energy_source)
        if lacking is not None:
            candidates.set_state(row, CandidateState.FAILED, lacking)
            results.add_event(session, self.search_id, "failed", lacking, row.number)
            return
        last = len(self.plan.rungs) - 1
        if row.number < 0:
            candidates.set_state(row, CandidateState.MEASURED)
            jobs.add(session, row, Kind.TRAIN, rung=last, epochs=(1, self.plan.rungs[last]))
            return
        reason = gate.rejection(self._limits(session, baselines), row.measured, row.intervals)
        if reason is not None:
            candidates.set_state(row, CandidateState.REJECTED, reason)
            results.add_event(session, self.search_id, "rejected", reason, row.number)
            return
        candidates.set_state(row, CandidateState.MEASURED)
        jobs.add(session, row, Kind.TRAIN, rung=0, epochs=(1, self.plan.rungs[0]))

    def _limits(self, session: Session, baselines: Baselines) -> tuple[Limit, ...]:
        is_relative = any(constraint.baseline for constraint in self.plan.constraints)
        rows = candidates.baselines(session, self.search_id) if is_relative else []
        intervals = {row.name: row.intervals for row in rows if row.name is not None}
        return resolve(self.plan.constraints, baselines, intervals)
