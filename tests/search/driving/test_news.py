from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search import news, reconcile
from search.objectives import Limit
from search.states import CandidateState
from search.store.models import Candidate
from workers.job import Job, Outcome, Status


def test_a_watcher_hears_once_of_every_step_of_a_candidate(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(constraints={"latency_ms": 6.0}, max_candidates=6)
    driver = bench.driver()
    lines: list[str] = []
    status: list[str] = []
    driver.on_event, driver.on_status = lines.append, status.append
    bench.run(driver)
    assert len(set(lines)) == len(lines)
    assert "resnet (baseline): finished" in " ".join(lines)
    for number in range(1, 7):
        mine = [line for line in lines if line.startswith(f"#{number} ")]
        assert "measured" in mine[0] or "above the limit 6" in mine[0]
    assert any("after 1 of 9 epochs" in line for line in lines)
    assert status[-1].startswith("6 of 6 candidates: ")


def test_counts_are_listed_in_the_order_of_a_candidates_life(make_bench: Callable[..., Any]) -> None:
    plan = make_bench(max_candidates=9).plan
    states = [CandidateState.FINISHED, CandidateState.REJECTED, CandidateState.FINISHED]
    assert news.of_search(states, plan) == "3 of 9 candidates: 1 rejected, 2 finished"
    assert news.of_search([], plan) == "0 of 9 candidates"


def test_one_of_a_kind_is_told_as_one(make_bench: Callable[..., Any]) -> None:
    plan = make_bench(max_candidates=1).plan
    assert news.of_search([CandidateState.FINISHED], plan) == "1 of 1 candidate: 1 finished"
    assert reconcile.words(1, 0) == "of an earlier driver: 1 attempt lost"
    assert reconcile.words(2, 1) == "of an earlier driver: 2 attempts lost, 1 trial given up"


def test_a_job_that_the_machine_failed_is_told_with_the_reason(
    make_bench: Callable[..., Any], answer: Any
) -> None:
    bench, told, failed = make_bench(max_candidates=2), [], []

    def perform(job: Job) -> Outcome:
        if not failed and job.candidate == 1:
            failed.append(job)
            return Outcome(job.id, job.attempt, job.lease, Status.ERROR, "the device is gone")
        return answer(job, bench.digest)

    driver = bench.driver()
    driver.on_event = told.append
    bench.run(driver, perform)
    assert sum("its measure job was not done: the device is gone" in text for text in told) == 1


def test_what_finishes_on_a_limit_is_told_as_borderline(make_bench: Callable[..., Any]) -> None:
    plan = make_bench(max_candidates=1).plan
    row = Candidate(
        number=1,
        name=None,
        family="vit",
        state="finished",
        epoch=9,
        measured={"accuracy": 0.9, "latency_ms": 2.01},
        intervals={"latency_ms": (1.98, 2.06)},
    )
    told = news.of_candidate(row, plan, [Limit("latency_ms", 2.0, upper=True)])
    assert told is not None
    assert told.endswith("; borderline: latency_ms 1.98 to 2.06 contains the limit 2")
    assert "borderline" not in (news.of_candidate(row, plan, [Limit("latency_ms", 3.0, upper=True)]) or "")


def test_a_teacher_that_only_guesses_is_told_as_such(make_bench: Callable[..., Any]) -> None:
    plan = make_bench(max_candidates=1).plan
    row = Candidate(number=0, name="resnet", family="", state="finished", epoch=9, measured={"accuracy": 0.1})
    row.intervals = {"accuracy": (0.05, 0.2)}
    told = news.of_candidate(row, plan)
    assert told is not None
    assert told.endswith("its accuracy is not told apart from guessing one of 10 classes by its interval")
    row.intervals = {"accuracy": (0.85, 0.95)}
    assert "guessing" not in (news.of_candidate(row, plan) or "")
