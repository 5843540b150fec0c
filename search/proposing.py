"""Adds the next candidate: what the study proposes, but for what is predicted to break a limit for sure; or lets one
that has earned it train on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

from search import predictor, screened
from search.memory import Memory
from search.plan import Plan
from search.screening import Screen, Sieve
from search.settle import Settler
from search.states import CandidateState
from search.store.models import Search
from search.store.write import candidates, jobs, results
from search.study import Study
from spaces.dims import Point
from spaces.spec import ArchSpec
from workers.job import Kind

Write = Callable[[Callable[[Session, Search], Any]], Any]


def propose(
    number: int, study: Study, memory: Memory, settler: Settler, screen: Screen, write: Write
) -> None:
    """Raises what `Study.ask` raises. write: one transaction under the driver's lease."""
    record = write(lambda _, search: dict(search.data.get(screened.RECORD, {})))
    sieve = _sieve(memory, screen, record)
    families = memory.plan.space.families

    def leaves_out(point: Point, spec: ArchSpec, seed: int) -> bool:
        family = str(point["family"])
        known = memory.plan.closed_form(family, spec) if sieve.trusted else {}
        return sieve.leaves_out(predictor.features(known, spec.image_size, family, families), seed)

    proposal = study.ask(number, memory.known, memory.taken, leaves_out)

    def work(session: Session, search: Search) -> None:
        settler.add_candidate(
            session, number, proposal.point, proposal.spec, proposal.trial, memory.baselines
        )
        kept = sieve.kept(record, number)
        if kept != record and kept["errors"]:
            search.data = {**search.data, screened.RECORD: kept}
        if sieve.left_out:
            text = f"{screened.proposals(sieve.left_out)} left out before candidate {number}"
            results.add_event(session, search.id, "screened", f"{text}: {sieve.why}", number)

    write(work)


def promote(number: int, rung: int, search_id: int, plan: Plan, write: Write) -> None:
    """Adds the training of a waiting candidate to a rung, by its index."""

    def work(session: Session, _: Search) -> None:
        row = candidates.by_number(session, search_id, number)
        candidates.set_state(row, CandidateState.TRAINING)
        jobs.add(session, row, Kind.TRAIN, rung=rung, epochs=(row.epoch + 1, plan.rungs[rung]))

    write(work)


def _sieve(memory: Memory, screen: Screen, record: dict[str, Any]) -> Sieve:
    by_number = {number: memory.seen[number].example for number in sorted(memory.seen)}
    measured = {number: example.costs for number, example in by_number.items()}
    limits = memory.limits if memory.plan.config.search.screen == "auto" else ()
    is_trusted = bool(limits) and screened.tally(record, measured).is_trusted
    return Sieve(screen, limits, list(by_number.values()), is_trusted)
