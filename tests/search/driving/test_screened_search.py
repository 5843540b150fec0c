"""A search whose latencies follow from the FLOPs, so that they can be predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from search.driver import Idle
from search.screened import RECORD
from search.states import CandidateState
from search.status import status
from search.store.models import Candidate, Search
from search.store.write import candidates
from spaces import analysis
from workers.job import Job, Kind, Outcome

LIMIT = 2.0


def predictable(answer: Callable[[Job, str], Outcome]) -> Callable[[Job, str], Outcome]:
    def of(job: Job, digest: str) -> Outcome:
        outcome = answer(job, digest)
        if job.kind is not Kind.MEASURE:
            return outcome
        assert outcome.measurement is not None
        ms = latency(job.spec)
        figures = replace(
            outcome.measurement, latency_ms=ms, latency_ms_low=ms * 0.99, latency_ms_high=ms * 1.01
        )
        return replace(outcome, measurement=figures)

    return of


def latency(spec: Any) -> float:
    return (analysis.analyse(spec).flops / 1e6) ** 0.8


def drive(bench: Any, respond: Callable[[Job, str], Outcome], stop_after: int | None = None) -> None:
    """To the end, or to a kill after so many jobs."""
    driver = bench.driver()
    done = 0
    while not isinstance(job := driver.next_job(), Idle):
        driver.finish(respond(job, bench.digest))
        done += 1
        if done == stop_after:
            return
    driver.close()


def rows(bench: Any) -> list[Candidate]:
    return [row for row in bench.rows(Candidate) if row.number > 0]


def record(bench: Any) -> dict[str, Any]:
    return bench.store.write(lambda s: dict(s.get_one(Search, bench.search_id).data.get(RECORD, {})))


@pytest.fixture
def options() -> dict[str, Any]:
    """Drawn at random, as most proposals of other samplers soon keep the limit by themselves."""
    settings = {"max_candidates": 40, "sampler": "random", "rungs": "none"}
    return {"constraints": {"latency_ms": LIMIT}, "baselines": {}, **settings}


def test_hopeless_proposals_are_not_built_and_are_told(
    make_bench: Callable[..., Any], answer: Any, options: dict[str, Any]
) -> None:
    bench = make_bench(**options)
    drive(bench, predictable(answer))
    found = rows(bench)
    assert len(found) == 40, "what was left out does not count as a candidate"
    kept = record(bench)
    assert kept["left_out"] > 5
    late = [row for row in found if row.number > 25]
    hopeless = [row for row in late if latency(candidates.spec_of(row)) > 1.5 * LIMIT]
    assert {row.number for row in hopeless} <= {int(number) for number in kept["checked"]}
    with bench.store.read() as reader:
        screen = status(reader, bench.config.name)["screen"]
    assert screen["left_out"] == kept["left_out"]
    assert screen["checked"] == len(kept["checked"])
    assert screen["misses"] == 0
    assert 0 <= screen["errors"]["latency_ms"]["median"] < 0.2


def test_turned_off_it_leaves_nothing_out(
    make_bench: Callable[..., Any], answer: Any, options: dict[str, Any]
) -> None:
    bench = make_bench(**options, screen="off")
    drive(bench, predictable(answer))
    assert record(bench) == {}
    rejected = [row for row in rows(bench) if row.state == CandidateState.REJECTED]
    assert any(row.number > 25 for row in rejected)


def test_after_a_kill_the_same_candidates_are_proposed_and_the_same_left_out(
    make_bench: Callable[..., Any], answer: Any, options: dict[str, Any]
) -> None:
    whole, killed = make_bench("whole.db", **options), make_bench("killed.db", **options)
    drive(whole, predictable(answer))
    for _ in range(4):
        drive(killed, predictable(answer), stop_after=15)
    drive(killed, predictable(answer))
    assert [row.digest for row in rows(killed)] == [row.digest for row in rows(whole)]
    assert record(killed) == record(whole)


def test_a_latency_that_cannot_be_predicted_leaves_everything_in(
    make_bench: Callable[..., Any], answer: Any, options: dict[str, Any]
) -> None:
    bench = make_bench(**options)
    drive(bench, answer)  # drawn from the digest
    assert record(bench)["left_out"] == 0
