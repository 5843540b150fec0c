"""When the teacher of a search is made, and what waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from search.driver import Idle
from search.errors import UserError
from search.states import AttemptState, CandidateState, JobState, SearchState
from search.store.models import Artifact, Attempt, Candidate, Event, JobRow, Search
from workers.job import Job, Kind, Outcome, Status

Make = Callable[..., Any]
SOFT = {"epochs": 9, "distillation": {"teacher": {"train": "resnet", "epochs": 4}}}
TOKEN = {"epochs": 9, "distillation": {"teacher": {"train": "resnet"}, "kind": "token"}}


def teach_jobs(bench: Any) -> list[JobRow]:
    return [row for row in bench.rows(JobRow) if row.kind == Kind.TEACH]


def teacher(bench: Any) -> Candidate:
    return next(row for row in bench.rows(Candidate) if row.role == "teacher")


def state(bench: Any) -> str:
    return bench.store.write(lambda s: s.get(Search, bench.search_id).state)


def trouble(job: Job, reason: str, status: Status = Status.ERROR, **notes: bool) -> Outcome:
    return Outcome(job.id, job.attempt, job.lease, status, reason, notes=notes)


def test_the_teacher_is_made_once_before_anything_that_learns_from_it(make_bench: Make, answer: Any) -> None:
    bench, done = make_bench(training=SOFT), []
    bench.run(bench.driver(), lambda job: (done.append(job), answer(job, bench.digest))[1])
    kinds = [job.kind for job in done]
    assert kinds.count(Kind.TEACH) == 1
    assert kinds.index(Kind.TEACH) < kinds.index(Kind.TRAIN)
    assert (state(bench), teacher(bench).state) == (SearchState.FINISHED, CandidateState.FINISHED)
    trained = [job for job in done if job.kind is Kind.TRAIN]
    assert {job.teacher.checkpoint.path for job in trained} == {bench.rows(Artifact)[0].path}
    assert {job.teacher.name for job in trained} == {"resnet"}
    assert not [job for job in done if job.kind is not Kind.TRAIN and job.teacher is not None]


def test_the_teacher_is_trained_for_its_own_epochs_and_keeps_its_accuracy(make_bench: Make) -> None:
    bench = make_bench(training=SOFT)
    bench.run(bench.driver())
    row = teacher(bench)
    assert [(job.first_epoch, job.last_epoch) for job in teach_jobs(bench)] == [(1, 4)]
    assert (row.number, row.name, row.epoch) == (0, "resnet", 4)
    low, high = row.intervals["accuracy"]
    assert low < row.measured["accuracy"] < high
    said = [event.text for event in bench.rows(Event) if event.kind == "teacher"]
    assert said == [
        f"teacher resnet: accuracy {row.measured['accuracy']:.4f} ({low:.4f}–{high:.4f}) on 269 val images"
    ]


def test_a_search_without_distillation_has_no_teacher(make_bench: Make) -> None:
    bench = make_bench()
    bench.run(bench.driver())
    assert teach_jobs(bench) == []
    assert {row.role for row in bench.rows(Candidate)} == {"candidate", "baseline"}


def test_trainings_wait_for_a_teacher_at_work_and_measurements_do_not(make_bench: Make, answer: Any) -> None:
    bench = make_bench(training=SOFT)
    driver = bench.driver()
    teaching = driver.next_job()
    assert (teaching.kind, teaching.candidate, teaching.last_epoch) == (Kind.TEACH, 0, 4)
    while isinstance(job := driver.next_job(), Job):
        assert job.kind is Kind.MEASURE
        driver.finish(answer(job, bench.digest))
    assert job is Idle.WAIT
    waiting = [row for row in bench.rows(JobRow) if row.state == JobState.PENDING]
    assert waiting
    assert {row.kind for row in waiting} == {Kind.TRAIN}
    assert sum(row.role == "candidate" for row in bench.rows(Candidate)) <= 1
    driver.finish(answer(teaching, bench.digest))
    assert driver.next_job().kind is Kind.TRAIN


def test_baselines_without_a_token_learn_from_labels_and_do_not_wait(make_bench: Make, answer: Any) -> None:
    bench = make_bench(training=TOKEN, space={"families": ["deit"]})
    driver, trained = bench.driver(), []
    teaching = driver.next_job()
    while isinstance(job := driver.next_job(), Job):
        trained += [job] if job.kind is Kind.TRAIN else []
        driver.finish(answer(job, bench.digest))
    assert [(job.candidate, job.teacher) for job in trained] == [(-1, None)]
    driver.finish(answer(teaching, bench.digest))
    job = driver.next_job()
    assert (job.kind, job.candidate, job.teacher.name) == (Kind.TRAIN, 1, "resnet")


@pytest.mark.parametrize("is_done", [False, True], ids=["while it is made", "after it was made"])
def test_a_driver_killed_around_the_teacher_neither_loses_it_nor_makes_it_twice(
    make_bench: Make, answer: Any, is_done: bool
) -> None:
    bench = make_bench(training=SOFT)
    driver = bench.driver()
    job = driver.next_job()
    assert job.kind is Kind.TEACH
    if is_done:
        driver.finish(answer(job, bench.digest))
    after = bench.driver()
    assert after.finish(answer(job, bench.digest)) is False
    bench.run(after)
    assert [row.state for row in teach_jobs(bench)] == [JobState.DONE]
    states = [row.state for row in bench.rows(Attempt) if row.job_id == job.id]
    assert states == [AttemptState.DONE] if is_done else [AttemptState.LOST, AttemptState.DONE]
    assert (state(bench), teacher(bench).state) == (SearchState.FINISHED, CandidateState.FINISHED)


def test_a_teacher_stopped_half_way_goes_on_from_its_checkpoint(make_bench: Make, answer: Any) -> None:
    import dataclasses

    bench = make_bench(training=SOFT)
    driver = bench.driver()
    job = driver.next_job()
    half = dataclasses.replace(job, last_epoch=2)
    driver.finish(dataclasses.replace(answer(half, bench.digest), status=Status.STOPPED))
    again = driver.next_job()
    assert (again.id, again.first_epoch, again.last_epoch) == (job.id, 3, 4)
    assert again.checkpoint.epoch == 2


def test_a_machine_that_fails_the_teacher_is_given_its_tries(make_bench: Make, answer: Any) -> None:
    bench = make_bench(training=SOFT)
    bench.run(
        bench.driver(),
        lambda job: (
            trouble(job, "ECC error")
            if job.kind is Kind.TEACH and job.attempt == 1
            else answer(job, bench.digest)
        ),
    )
    assert state(bench) == SearchState.FINISHED
    assert [row.state for row in bench.rows(Attempt) if row.job_id == teach_jobs(bench)[0].id] == [
        AttemptState.FAILED,
        AttemptState.DONE,
    ]


def test_a_teacher_that_fails_by_its_own_fault_ends_the_search_and_says_why(make_bench: Make) -> None:
    bench = make_bench(training=SOFT)
    driver = bench.driver()
    with pytest.raises(UserError, match=r"teacher 'resnet' failed.*loss is not finite"):
        driver.finish(trouble(driver.next_job(), "loss is not finite", Status.FAILED))
    assert state(bench) == SearchState.FAILED
    with pytest.raises(UserError, match="teacher 'resnet' failed"):
        bench.driver()


def test_a_lost_teacher_is_made_again_once_and_the_trainings_go_on(make_bench: Make, answer: Any) -> None:
    bench, missed = make_bench(training=SOFT), []

    def perform(job: Job) -> Outcome:
        if job.kind is Kind.TRAIN and job.candidate in (1, 2) and job.candidate not in missed:
            missed.append(job.candidate)
            if len(missed) == 1:
                return trouble(job, "teacher resnet: the checkpoint is missing", teacher_lost=True)
        return answer(job, bench.digest)

    told: list[str] = []
    driver = bench.driver()
    driver.on_event = told.append
    bench.run(driver, perform)
    assert state(bench) == SearchState.FINISHED
    assert "resnet (teacher): teaches again: teacher resnet: the checkpoint is missing" in told
    assert [(row.state, row.first_epoch) for row in teach_jobs(bench)] == [(JobState.DONE, 1)] * 2
    of_teacher = [row.path for row in bench.rows(Artifact) if row.candidate_id == teacher(bench).id]
    assert len(of_teacher) == 1
    assert any(e.kind == "retry" and "teaches again" in e.text for e in bench.rows(Event))


def test_two_trainings_that_miss_the_teacher_have_it_made_again_once(make_bench: Make, answer: Any) -> None:
    bench = make_bench(training=SOFT)
    driver, running = bench.driver(), []
    while len(running) < 2:
        job = driver.next_job()
        if isinstance(job, Job) and job.kind is Kind.TRAIN:
            running.append(job)
        elif isinstance(job, Job):
            driver.finish(answer(job, bench.digest))
    for job in running:
        driver.finish(trouble(job, "the checkpoint is missing", teacher_lost=True))
    assert [row.state for row in teach_jobs(bench)] == [JobState.DONE, JobState.PENDING]
    bench.run(driver)
    assert state(bench) == SearchState.FINISHED


def test_a_teacher_stopped_by_the_deadline_goes_on_when_the_search_is_extended(
    make_bench: Make, answer: Any
) -> None:
    import dataclasses
    import time

    from search.store.write import searches

    bench = make_bench(training=SOFT)
    driver = bench.driver()
    job = driver.next_job()
    half = dataclasses.replace(job, last_epoch=2)
    driver.schedule.deadline = time.time() - 1
    driver.finish(dataclasses.replace(answer(half, bench.digest), status=Status.STOPPED))
    assert driver.next_job() is Idle.FINISHED
    assert teacher(bench).state == CandidateState.STOPPED
    values = bench.config.to_dict()
    again = bench.driver(prepare=lambda s: searches.reconfigure(s, bench.search_id, values, None))
    jobs = [again.next_job() for _ in range(2)]
    taught = next(job for job in jobs if job.kind is Kind.TEACH)
    assert (taught.first_epoch, taught.last_epoch, taught.checkpoint.epoch) == (3, 4, 2)
    for job in jobs:
        again.finish(answer(job, bench.digest))
    bench.run(again)
    assert (state(bench), teacher(bench).state) == (SearchState.FINISHED, CandidateState.FINISHED)
