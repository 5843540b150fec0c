"""When it is probed how a family is trained, and what waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from search import executions
from search.driver import Idle
from search.states import AttemptState, CandidateState, JobState, SearchState
from search.store.models import Attempt, Candidate, Event, JobRow, Search
from search.store.write import searches
from workers.execution import Execution
from workers.job import Job, Kind, Outcome, Status

Make = Callable[..., Any]
OPEN = {"epochs": 9, "precision": "auto"}
TAUGHT = OPEN | {"distillation": {"teacher": {"train": "resnet", "epochs": 4}}}
CHOSEN, PLAIN = Execution("bf16", "channels_last"), Execution()


def probes(bench: Any) -> list[JobRow]:
    return [row for row in bench.rows(JobRow) if row.kind == Kind.PROBE]


def data(bench: Any) -> dict[str, Any]:
    return bench.store.write(lambda s: s.get(Search, bench.search_id).data)


def state(bench: Any) -> str:
    return bench.store.write(lambda s: s.get(Search, bench.search_id).state)


def until(driver: Any, kind: Kind, bench: Any, answer: Any) -> Job:
    """The next job of a kind; others before it are done."""
    while isinstance(job := driver.next_job(), Job) and job.kind is not kind:
        driver.finish(answer(job, bench.digest))
    assert isinstance(job, Job)
    return job


def test_every_family_is_probed_once_before_its_first_training(make_bench: Make, answer: Any) -> None:
    bench, done = make_bench(training=OPEN), []
    bench.run(bench.driver(), lambda job: (done.append(job), answer(job, bench.digest))[1])
    assert state(bench) == SearchState.FINISHED
    chosen = executions.choices(data(bench))
    families = {row.family for row in bench.rows(Candidate) if row.number > 0}
    assert set(chosen) == families | {"paretovit_resnet"}
    assert len(probes(bench)) == len(chosen)
    assert {choice.execution for choice in chosen.values()} == {CHOSEN}
    family = {row.number: row.family if row.number > 0 else "resnet" for row in bench.rows(Candidate)}
    seen = set()
    for job in done:
        if job.kind is Kind.PROBE:
            seen.add(family[job.candidate])
        elif job.kind is Kind.TRAIN:
            assert family[job.candidate] in seen
            assert job.execution == CHOSEN


def test_a_probe_is_told_what_its_choice_is_for(make_bench: Make, answer: Any) -> None:
    bench, told = make_bench(training=OPEN, max_candidates=12), {}
    bench.run(
        bench.driver(),
        lambda job: (
            (told.setdefault(job.candidate > 0, job), answer(job, bench.digest))[1]
            if job.kind is Kind.PROBE
            else answer(job, bench.digest)
        ),
    )
    of_candidate, of_baseline = told[True].probe, told[False].probe
    # Rungs 1, 3, 9: 1 + 2/3 + 6/9 epochs a candidate, and 4 of 12 are of this family.
    assert (of_candidate.epochs, of_candidate.epochs_in_all) == (1, pytest.approx(4 * (1 + 2 / 3 + 6 / 9)))
    assert {spec.model for spec in of_candidate.beside} == {told[True].spec.model}
    assert len({spec.digest for spec in (told[True].spec, *of_candidate.beside)}) == 3
    assert (of_baseline.epochs, of_baseline.epochs_in_all, of_baseline.beside) == (9, 9, ())


def test_with_everything_set_no_probe_runs_and_the_setting_is_kept(make_bench: Make) -> None:
    bench = make_bench(training={"epochs": 9, "memory_format": "channels_last"})
    bench.run(bench.driver())
    assert probes(bench) == []
    kept = executions.choices(data(bench))["paretovit_resnet"]
    assert kept.execution == Execution("fp32", "channels_last")
    assert kept.words == "fp32, channels-last, 1 thread (as it is set)"


def test_trainings_of_a_family_wait_for_its_probe_and_nothing_is_proposed_meanwhile(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(training=OPEN, space={"families": ["vit"]}, baselines={})
    driver = bench.driver()
    probe = until(driver, Kind.PROBE, bench, answer)
    assert driver.next_job() is Idle.WAIT
    assert len(bench.rows(Candidate)) == 1
    driver.finish(answer(probe, bench.digest))
    assert driver.next_job().kind is Kind.TRAIN


def test_what_a_probe_chose_is_told(make_bench: Make, answer: Any) -> None:
    bench, told = make_bench(training=OPEN, space={"families": ["vit"]}, baselines={}), []
    driver = bench.driver()
    driver.on_event = told.append
    driver.finish(answer(until(driver, Kind.PROBE, bench, answer), bench.digest))
    speed = "1.34x the speed of fp32, contiguous, 1 thread"
    text = f"vit is trained in bf16, channels-last, 1 thread ({speed}; probed on #1)"
    assert text in told
    assert [event.text for event in bench.rows(Event) if event.kind == "execution"] == [text]


@pytest.mark.parametrize("is_done", [False, True], ids=["while it runs", "after it ended"])
def test_a_driver_killed_around_a_probe_neither_loses_it_nor_probes_twice(
    make_bench: Make, answer: Any, is_done: bool
) -> None:
    bench = make_bench(training=OPEN, space={"families": ["vit"]}, baselines={})
    driver = bench.driver()
    job = until(driver, Kind.PROBE, bench, answer)
    if is_done:
        driver.finish(answer(job, bench.digest))
    after = bench.driver()
    assert after.finish(answer(job, bench.digest)) is False
    bench.run(after)
    assert [row.state for row in probes(bench)] == [JobState.DONE]
    states = [row.state for row in bench.rows(Attempt) if row.job_id == job.id]
    assert states == [AttemptState.DONE] if is_done else [AttemptState.LOST, AttemptState.DONE]
    assert state(bench) == SearchState.FINISHED


def test_a_lost_worker_has_the_probe_done_again(make_bench: Make, answer: Any) -> None:
    bench = make_bench(training=OPEN, space={"families": ["vit"]}, baselines={})
    driver = bench.driver()
    job = until(driver, Kind.PROBE, bench, answer)
    driver.lost(job.id, job.attempt, "its worker died")
    again = driver.next_job()
    assert (again.kind, again.id, again.attempt) == (Kind.PROBE, job.id, 2)


def test_a_family_whose_probe_fails_is_trained_in_the_plainest_way(make_bench: Make, answer: Any) -> None:
    bench = make_bench(training=OPEN, space={"families": ["vit"]}, baselines={})
    trained = []

    def perform(job: Job) -> Outcome:
        if job.kind is Kind.PROBE:
            return Outcome(job.id, job.attempt, job.lease, Status.FAILED, "its loss is nan")
        trained.extend([job] if job.kind is Kind.TRAIN else [])
        return answer(job, bench.digest)

    bench.run(bench.driver(), perform)
    assert state(bench) == SearchState.FINISHED
    assert {job.execution for job in trained} == {PLAIN}
    assert executions.choices(data(bench))["vit"].why == "the probe failed: its loss is nan"
    assert CandidateState.FAILED not in {row.state for row in bench.rows(Candidate)}


def test_a_probe_that_kills_its_workers_costs_the_candidate_nothing(make_bench: Make, answer: Any) -> None:
    bench = make_bench(training=OPEN, space={"families": ["vit"]}, baselines={})
    driver = bench.driver()
    for _ in range(3):
        job = until(driver, Kind.PROBE, bench, answer)
        driver.lost(job.id, job.attempt, "its worker died")
    job = driver.next_job()
    assert (job.kind, job.execution, job.candidate) == (Kind.TRAIN, PLAIN, 1)


def test_a_resumed_and_extended_search_keeps_its_choice(make_bench: Make, answer: Any) -> None:
    bench = make_bench(training=OPEN, space={"families": ["vit"]}, baselines={}, max_candidates=2)
    bench.run(bench.driver())
    values = bench.config.to_dict()
    values["search"]["max_candidates"] = 4
    from search.config import from_stored
    from search.plan import make_plan

    bench.plan = make_plan(from_stored(values), bench.plan.data)
    again = bench.driver(prepare=lambda s: searches.reconfigure(s, bench.search_id, values, None))
    trained = []
    bench.run(again, lambda job: (trained.append(job), answer(job, bench.digest))[1])
    assert len(probes(bench)) == 1
    new = [job for job in trained if job.kind is Kind.TRAIN and job.candidate > 2]
    assert new
    assert {job.execution for job in new} == {CHOSEN}


def test_a_probe_that_the_deadline_cut_off_is_made_when_the_search_is_extended(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(training=OPEN, space={"families": ["vit"]}, baselines={}, max_candidates=2)
    driver = bench.driver()
    job = until(driver, Kind.PROBE, bench, answer)
    driver.schedule.deadline = time.time() - 1
    driver.lost(job.id, job.attempt, "its worker died")
    assert driver.next_job() is Idle.FINISHED
    assert [row.state for row in probes(bench)] == [JobState.CANCELLED]
    values = bench.config.to_dict()
    bench.run(bench.driver(prepare=lambda s: searches.reconfigure(s, bench.search_id, values, None)))
    assert [row.state for row in probes(bench)] == [JobState.CANCELLED, JobState.DONE]


def test_a_teacher_that_is_trained_is_probed_as_the_network_it_is(make_bench: Make, answer: Any) -> None:
    bench, done = make_bench(training=TAUGHT, baselines={}), []
    bench.run(bench.driver(), lambda job: (done.append(job), answer(job, bench.digest))[1])
    first, second = done[:2]
    assert (first.kind, first.candidate, first.probe.epochs) == (Kind.PROBE, 0, 4)
    assert first.settings.recipe.distillation is None
    assert (second.kind, second.execution) == (Kind.TEACH, CHOSEN)
