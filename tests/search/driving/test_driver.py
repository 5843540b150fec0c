from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from search import lease
from search.driver import Idle
from search.errors import UserError
from search.states import TERMINAL_CANDIDATE, AttemptState, CandidateState, JobState, SearchState
from search.store.models import Artifact, Attempt, Candidate, Epoch, Event, JobRow, MeasurementRow, Search
from search.store.write import searches
from search.store.write.searches import LeaseLost
from workers.job import Decision, EpochReport, Job, Kind, Outcome, Status

Make = Callable[..., Any]


def rows(bench: Any, model: Any) -> list[Any]:
    return bench.rows(model)


def candidates(bench: Any) -> list[Candidate]:
    return [row for row in rows(bench, Candidate) if row.number > 0]


def state(bench: Any) -> str:
    return bench.store.write(lambda s: s.get(Search, bench.search_id).state)


def history(bench: Any) -> list[tuple[Any, ...]]:
    return [(c.number, c.digest, c.state, c.rung, c.measured.get("accuracy")) for c in candidates(bench)]


def test_a_search_ends_with_every_candidate_ended_and_a_finished_front(make_bench: Make) -> None:
    bench = make_bench()
    bench.run(bench.driver())
    assert state(bench) == SearchState.FINISHED
    assert [c.number for c in candidates(bench)] == list(range(1, 13))
    assert {CandidateState(c.state) for c in candidates(bench)} <= TERMINAL_CANDIDATE
    assert sum(c.state == CandidateState.FINISHED for c in candidates(bench)) >= 3
    assert {job.state for job in rows(bench, JobRow)} == {JobState.DONE}


def test_rungs_train_prefixes_of_one_schedule_without_a_gap(make_bench: Make) -> None:
    bench = make_bench()
    bench.run(bench.driver())
    for candidate in candidates(bench):
        spans = [
            (j.first_epoch, j.last_epoch)
            for j in rows(bench, JobRow)
            if j.candidate_id == candidate.id and j.kind == Kind.TRAIN
        ]
        assert spans == [(1, 1), (2, 3), (4, 9)][: len(spans)]
        epochs = [e.epoch for e in rows(bench, Epoch) if e.candidate_id == candidate.id]
        assert epochs == list(range(1, candidate.epoch + 1))


def test_a_rejected_candidate_is_never_trained_and_says_why(make_bench: Make) -> None:
    bench = make_bench(constraints={"latency_ms": 5.0})
    bench.run(bench.driver())
    rejected = [c for c in candidates(bench) if c.state == CandidateState.REJECTED]
    assert rejected
    trained = {job.candidate_id for job in rows(bench, JobRow) if job.kind == Kind.TRAIN}
    for candidate in rejected:
        assert candidate.id not in trained
        assert "latency_ms" in candidate.reason
        assert "5" in candidate.reason


def test_a_relative_limit_waits_for_its_baseline(make_bench: Make) -> None:
    bench = make_bench(constraints={"latency_ms": "0.9x resnet"})
    driver = bench.driver()
    first = driver.next_job()
    assert (first.candidate, first.kind) == (-1, Kind.MEASURE)
    assert driver.next_job() is Idle.WAIT
    assert candidates(bench) == []


def test_a_baseline_that_fails_ends_the_search_when_a_limit_needs_it(make_bench: Make) -> None:
    bench = make_bench(constraints={"latency_ms": "1.5x resnet"})
    driver = bench.driver()
    with pytest.raises(UserError, match=r"baseline 'resnet' failed.*no memory"):
        driver.finish(failed(driver.next_job(), "no memory"))


def failed(job: Any, reason: str, status: Status = Status.FAILED) -> Outcome:
    return Outcome(job.id, job.attempt, job.lease, status, reason)


def test_a_failed_candidate_keeps_its_reason_and_the_others_complete(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    bench.run(
        bench.driver(),
        lambda job: failed(job, "loss is not finite") if job.candidate == 3 else answer(job, bench.digest),
    )
    assert state(bench) == SearchState.FINISHED
    by_number = {c.number: c for c in candidates(bench)}
    assert by_number[3].state == CandidateState.FAILED
    assert by_number[3].reason == "loss is not finite"
    assert len(by_number) == 12


def test_a_device_error_is_retried_and_then_given_up(make_bench: Make, answer: Any) -> None:
    bench = make_bench(limits={"max_attempts": 2})
    bench.run(
        bench.driver(),
        lambda job: (
            failed(job, "ECC error", Status.ERROR)
            if job.candidate == 2 or (job.attempt == 1 and job.candidate == 4)
            else answer(job, bench.digest)
        ),
    )
    by_number = {c.number: c for c in candidates(bench)}
    assert by_number[2].state == CandidateState.FAILED
    assert "2 times" in by_number[2].reason
    assert by_number[4].state != CandidateState.FAILED
    assert {a.state for a in rows(bench, Attempt)} == {AttemptState.DONE, AttemptState.FAILED}


def test_the_weights_that_a_training_began_from_are_told_once(make_bench: Make, answer: Any) -> None:
    bench = make_bench(rungs=[3, 9])
    noted = {"weights": {"name": "half", "sha256": "ab" * 32}}
    bench.run(
        bench.driver(),
        lambda job: dataclasses.replace(
            answer(job, bench.digest), notes=noted if job.kind == Kind.TRAIN else {"params": 1000}
        ),
    )
    told = [event.candidate for event in rows(bench, Event) if event.kind == "weights"]
    trained = {candidate.number for candidate in rows(bench, Candidate) if candidate.epoch > 0}
    assert sorted(told) == sorted(trained)
    assert {event.text for event in rows(bench, Event) if event.kind == "weights"} == {
        "began from half (SHA-256 abababababab)"
    }


def test_an_error_that_no_retry_mends_is_tried_once(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    hopeless = "weights are not here"
    bench.run(
        bench.driver(),
        lambda job: (
            dataclasses.replace(failed(job, hopeless, Status.ERROR), notes={"retry": False})
            if job.candidate == 2 and job.kind == Kind.TRAIN
            else answer(job, bench.digest)
        ),
    )
    candidate = next(c for c in candidates(bench) if c.number == 2)
    assert candidate.state == CandidateState.FAILED
    assert candidate.reason == f"train failed: {hopeless}"


@pytest.mark.parametrize("lost_epochs, first", [({3}, 2), ({3, 1}, 1)])
def test_a_candidate_whose_checkpoint_is_lost_goes_on_from_the_one_before_it_or_from_its_first_epoch(
    make_bench: Make, answer: Any, lost_epochs: set[int], first: int
) -> None:
    bench = make_bench(rungs=[1, 3, 9])
    asked: list[tuple[int, int, int]] = []

    def perform(job: Job) -> Outcome:
        if job.kind == Kind.TRAIN:
            asked.append((job.candidate, job.first_epoch, job.last_epoch))
            assert (0 if job.checkpoint is None else job.checkpoint.epoch) == job.first_epoch - 1
        if job.last_epoch == 9 and job.checkpoint is not None and job.checkpoint.epoch in lost_epochs:
            return dataclasses.replace(
                failed(job, "x: the checkpoint is missing", Status.ERROR), notes={"checkpoint_lost": True}
            )
        return answer(job, bench.digest)

    bench.run(bench.driver(), perform)
    lost = [candidate for candidate, began, _ in asked if began == 4]
    assert lost
    for candidate in lost:
        assert (candidate, first, 9) in asked
        assert checkpoints(bench, candidate) == [9]
    found = {c.number: c.state for c in candidates(bench)}
    assert {found[number] for number in lost if number > 0} == {CandidateState.FINISHED}
    assert CandidateState.FAILED not in found.values()


def test_while_training_may_go_on_the_checkpoint_that_it_began_from_is_kept_as_well(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(rungs=[1, 3, 5, 9])
    bench.run(bench.driver(), lambda job: answer(job, bench.digest))
    kept = {c.epoch: checkpoints(bench, c.number) for c in candidates(bench) if c.number > 0}
    assert kept[1] == [1]
    assert kept[3] == [1, 3]
    assert kept[9] == [9]


def checkpoints(bench: Any, number: int) -> list[int | None]:
    """Epochs of a candidate's checkpoints."""
    candidate = next(c for c in candidates(bench) if c.number == number)
    return [row.epoch for row in rows(bench, Artifact) if row.candidate_id == candidate.id]


def test_an_outcome_counts_once_and_a_late_one_is_refused(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    driver = bench.driver()
    job = driver.next_job()
    assert driver.finish(answer(job, bench.digest))
    before = rows(bench, MeasurementRow)
    assert not driver.finish(answer(job, bench.digest))
    assert len(rows(bench, MeasurementRow)) == len(before) == 1


def test_a_lost_attempt_is_retried_and_its_late_outcome_refused(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    driver = bench.driver()
    first = driver.next_job()
    driver.lost(first.id, first.attempt, "its worker died")
    second = driver.next_job()
    assert (second.id, second.attempt) == (first.id, 2)
    assert not driver.finish(answer(first, bench.digest))
    assert driver.finish(answer(second, bench.digest))


def test_a_second_driver_fences_the_first(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    old = bench.driver()
    job = old.next_job()
    new = bench.driver()
    with pytest.raises(LeaseLost):
        old.finish(answer(job, bench.digest))
    again = new.next_job()
    assert (again.id, again.attempt) == (job.id, 2)
    assert not new.finish(answer(job, bench.digest))
    assert new.finish(answer(again, bench.digest))


@pytest.mark.parametrize("every", [1, 2, 5])
def test_drivers_that_die_between_jobs_give_the_same_search(make_bench: Make, every: int) -> None:
    whole = make_bench()
    whole.run(whole.driver())
    broken = make_bench(db="other.db")
    while broken.run(broken.driver(), most=every) == every:
        pass
    assert history(broken) == history(whole)


def test_a_resumed_driver_counts_no_try_for_what_its_predecessor_left(make_bench: Make) -> None:
    bench = make_bench(limits={"max_attempts": 1})
    for _ in range(3):
        driver = bench.driver()
        driver.next_job()
    bench.run(bench.driver())
    assert state(bench) == SearchState.FINISHED
    assert not [c for c in rows(bench, Candidate) if c.state == CandidateState.FAILED]


def test_costs_measured_before_on_this_database_are_not_measured_again(make_bench: Make) -> None:
    first = make_bench()
    first.run(first.driver())
    second = make_bench()
    second.run(second.driver())
    assert {job.kind for job in rows(second, JobRow)} == {Kind.TRAIN}
    cached = rows(second, MeasurementRow)
    assert len(cached) == 13
    assert all(row.source_id is not None for row in cached)
    assert history(second) == history(first)


def test_optuna_is_told_the_truth(make_bench: Make) -> None:
    import optuna

    bench = make_bench(constraints={"latency_ms": 6.0})
    bench.run(bench.driver())
    study = optuna.load_study(study_name=bench.config.name, storage=bench.store.optuna_url)
    trials = {trial.number: trial for trial in study.get_trials()}
    told = {
        CandidateState.FINISHED: optuna.trial.TrialState.COMPLETE,
        CandidateState.STOPPED: optuna.trial.TrialState.PRUNED,
        CandidateState.REJECTED: optuna.trial.TrialState.PRUNED,
    }
    for candidate in candidates(bench):
        trial = trials[candidate.trial]
        assert trial.state == told[CandidateState(candidate.state)]
        assert trial.params == candidate.point
        assert trial.constraints["latency_ms"] == pytest.approx(candidate.measured["latency_ms"] / 6.0 - 1)
        if candidate.state == CandidateState.FINISHED:
            assert trial.values == [candidate.measured["accuracy"], candidate.measured["latency_ms"]]
    assert len(trials) == len(candidates(bench))


def test_a_drained_search_pauses_and_goes_on(make_bench: Make) -> None:
    bench = make_bench()
    driver = bench.driver()
    bench.run(driver, most=5)
    driver.drain_wanted = "interrupted"
    assert bench.run(driver) == 1, "whether the device is as it was, and nothing else"
    assert state(bench) == SearchState.PAUSED
    bench.run(bench.driver())
    assert state(bench) == SearchState.FINISHED
    assert len(candidates(bench)) == 12


def test_a_passed_deadline_stops_trainings_at_an_epoch_and_ends_the_search(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench()
    driver = bench.driver()
    while (job := driver.next_job()).kind != Kind.TRAIN:
        driver.finish(answer(job, bench.digest))
    driver.schedule.deadline = 1.0
    report = answer(job, bench.digest).epochs[0]
    assert driver.progress(report) is Decision.STOP
    stopped = dataclasses.replace(answer(job, bench.digest), status=Status.STOPPED, epoch=1, epochs=(report,))
    assert driver.finish(stopped)
    assert driver.next_job() is Idle.FINISHED
    assert state(bench) == SearchState.FINISHED
    assert {j.state for j in rows(bench, JobRow)} == {JobState.DONE, JobState.CANCELLED}
    assert {CandidateState(c.state) for c in rows(bench, Candidate)} <= TERMINAL_CANDIDATE


def test_an_epoch_of_a_stale_attempt_is_not_kept(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    driver = bench.driver()
    while (job := driver.next_job()).kind != Kind.TRAIN:
        driver.finish(answer(job, bench.digest))
    report: EpochReport = answer(job, bench.digest).epochs[0]
    driver.lost(job.id, job.attempt, "its worker died")
    before = len(rows(bench, Epoch))
    assert driver.progress(report) is Decision.STOP
    assert len(rows(bench, Epoch)) == before


def test_figures_of_another_device_or_from_other_images_are_not_kept(make_bench: Make, answer: Any) -> None:
    bench = make_bench(limits={"max_attempts": 1})
    driver = bench.driver()
    good = answer(driver.next_job(), bench.digest)
    elsewhere = dataclasses.replace(good.measurement, device_id="other")
    driver.finish(dataclasses.replace(good, measurement=elsewhere))
    assert rows(bench, MeasurementRow) == []
    assert "other" in rows(bench, Attempt)[0].reason
    driver = bench.driver()
    while (job := driver.next_job()).kind != Kind.TRAIN:
        driver.finish(answer(job, bench.digest))
    driver.finish(dataclasses.replace(answer(job, bench.digest), data_digest="ffff"))
    assert "other images" in rows(bench, Attempt)[-1].reason
    assert rows(bench, Epoch) == []


def test_a_fault_of_the_machine_pauses_the_search_and_fails_nobody(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    done = 0

    def disk_fills(job: Any) -> Outcome:
        nonlocal done
        done += 1
        return failed(job, "no space left", Status.ERROR) if done > 6 else answer(job, bench.digest)

    bench.run(bench.driver(), disk_fills)
    assert state(bench) == SearchState.PAUSED
    assert "no space left" in bench.store.write(lambda s: s.get(Search, bench.search_id).reason)
    assert not [c for c in rows(bench, Candidate) if c.state == CandidateState.FAILED]
    bench.run(bench.driver())
    assert state(bench) == SearchState.FINISHED
    assert len(candidates(bench)) == 12
    assert not [c for c in rows(bench, Candidate) if c.state == CandidateState.FAILED]


def test_a_machine_on_which_every_worker_dies_pauses_the_search(make_bench: Make) -> None:
    bench = make_bench(limits={"max_attempts": 2})
    driver = bench.driver()
    while not isinstance(job := driver.next_job(), Idle):
        driver.lost(job.id, job.attempt, "its worker died")
    assert state(bench) == SearchState.PAUSED
    assert "its worker died" in bench.store.write(lambda s: s.get(Search, bench.search_id).reason)
    assert not [c for c in rows(bench, Candidate) if c.state == CandidateState.FAILED]
    bench.run(bench.driver())
    assert state(bench) == SearchState.FINISHED


def test_a_candidate_that_kills_its_worker_fails_where_others_have_worked(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(limits={"max_attempts": 2})
    driver = bench.driver()
    while not isinstance(job := driver.next_job(), Idle):
        if job.candidate in (2, 3):
            driver.lost(job.id, job.attempt, "its worker died")
        else:
            driver.finish(answer(job, bench.digest))
    failed_ones = {c.number: c.reason for c in candidates(bench) if c.state == CandidateState.FAILED}
    assert failed_ones == dict.fromkeys((2, 3), "measure failed 2 times, at last: its worker died")
    assert state(bench) == SearchState.FINISHED


def test_a_last_job_that_a_working_machine_cannot_do_fails_its_candidate(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(max_candidates=1, limits={"max_attempts": 2})

    def perform(job: Any) -> Outcome:
        spoilt = job.candidate == 1 and job.kind == Kind.TRAIN
        return failed(job, "odd", Status.ERROR) if spoilt else answer(job, bench.digest)

    bench.run(bench.driver(), perform)
    assert state(bench) == SearchState.FINISHED
    assert [(c.state, c.reason) for c in candidates(bench)] == [
        ("failed", "train failed 2 times, at last: odd")
    ]


@pytest.mark.parametrize(
    "constraint",
    [{"flops": "5x resnet"}, {"params": "5x resnet"}, {"accuracy": "0.9x resnet"}, {"model_mb": "1x resnet"}],
)
def test_a_limit_may_be_relative_to_any_figure_of_a_baseline(
    make_bench: Make, constraint: dict[str, str]
) -> None:
    for _ in range(2):  # the second search takes its costs from the first
        bench = make_bench(constraints=constraint)
        bench.run(bench.driver())
        assert state(bench) == SearchState.FINISHED
        assert len(candidates(bench)) == 12


def test_a_baseline_that_fails_in_training_leaves_a_limit_on_its_latency(
    make_bench: Make, answer: Any
) -> None:
    bench = make_bench(constraints={"latency_ms": "1.5x resnet"})

    def perform(job: Any) -> Outcome:
        spoilt = job.candidate < 0 and job.kind == Kind.TRAIN
        return failed(job, "loss is not finite") if spoilt else answer(job, bench.digest)

    bench.run(bench.driver(), perform)
    assert state(bench) == SearchState.FINISHED


def test_what_a_deadline_stopped_goes_on_when_the_search_is_extended(make_bench: Make, answer: Any) -> None:
    bench = make_bench()
    driver = bench.driver()
    bench.run(driver, most=9)
    while (job := driver.next_job()).kind != Kind.TRAIN or job.last_epoch == 1:
        driver.finish(answer(job, bench.digest))
    driver.schedule.deadline = 1.0
    whole = answer(job, bench.digest)
    first = whole.epochs[0]
    worse = dataclasses.replace(whole.evaluation, epoch=first.epoch, accuracy=0.123)
    driver.finish(
        dataclasses.replace(
            whole, status=Status.STOPPED, epoch=first.epoch, epochs=(first,), evaluation=worse
        )
    )
    bench.run(driver)
    stopped = {c.number: c for c in candidates(bench) if c.state == CandidateState.STOPPED}
    assert (stopped[job.candidate].epoch, stopped[job.candidate].measured["accuracy"]) == (first.epoch, 0.123)

    config, search = bench.config.to_dict(), bench.search_id
    again = bench.driver(prepare=lambda s: searches.reconfigure(s, search, config, None))
    bench.run(again)
    assert state(bench) == SearchState.FINISHED
    assert len(candidates(bench)) == 12
    assert sum(c.state == CandidateState.FINISHED for c in candidates(bench)) >= 3
    for candidate in candidates(bench):
        epochs = [e.epoch for e in rows(bench, Epoch) if e.candidate_id == candidate.id]
        assert epochs == list(range(1, candidate.epoch + 1))
    trials = [c.trial for c in candidates(bench)]
    assert len(set(trials)) == len(trials)


def test_a_refused_driver_changes_nothing(make_bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench()
    bench.driver()
    before = bench.store.write(lambda s: dict(s.get(Search, bench.search_id).__dict__))
    me = lease.this_process()
    parent = dataclasses.replace(me, pid=os.getppid(), started=lease.start_time(psutil.Process(os.getppid())))
    bench.store.write(lambda s: setattr(s.get(Search, bench.search_id), "owner_pid", parent.pid))
    bench.store.write(lambda s: setattr(s.get(Search, bench.search_id), "owner_started", parent.started))
    changed = bench.config.to_dict() | {"name": "other"}
    with pytest.raises(UserError, match=f"process {parent.pid}"):
        bench.driver(prepare=lambda s: searches.reconfigure(s, bench.search_id, changed, 5.0))
    after = bench.store.write(lambda s: dict(s.get(Search, bench.search_id).__dict__))
    assert {key: after[key] for key in ("config", "deadline", "lease")} == {
        key: before[key] for key in ("config", "deadline", "lease")
    }


def test_a_driver_of_another_host_yields_only_when_its_counter_stood_still(make_bench: Make) -> None:
    bench = make_bench()
    bench.driver()
    bench.store.write(lambda s: setattr(s.get(Search, bench.search_id), "owner_host", "elsewhere"))
    beat = bench.store.write(lambda s: s.get(Search, bench.search_id).beat)
    with pytest.raises(UserError, match="on elsewhere"):
        bench.driver()
    with pytest.raises(UserError, match="on elsewhere"):
        bench.driver(silent_beat=beat - 1)
    bench.driver(silent_beat=beat)


def test_an_overdue_job_is_named(make_bench: Make) -> None:
    bench = make_bench(limits={"job_seconds": 1})
    driver = bench.driver()
    job = driver.next_job()
    assert driver.schedule.overdue() == []
    key = job.id, job.attempt
    running = driver.schedule._running[key]
    driver.schedule._running[key] = dataclasses.replace(running, since=running.since - 2)
    assert driver.schedule.overdue() == [key]


@pytest.mark.parametrize("sampler", ["random", "tpe", "nsga2", "gp"])
def test_optunas_samplers_by_name_train_without_rungs(make_bench: Make, sampler: str) -> None:
    bench = make_bench(sampler=sampler)
    bench.run(bench.driver())
    assert {CandidateState(c.state) for c in candidates(bench)} == {CandidateState.FINISHED}
    assert len({c.digest for c in candidates(bench)}) == 12


def test_a_database_that_is_removed_under_a_search_ends_it_at_once(make_bench: Make, tmp_path: Path) -> None:
    bench = make_bench()
    driver = bench.driver()
    bench.run(driver, most=3)
    (tmp_path / "searches.db").unlink()
    driver._last_beat = 0.0
    with pytest.raises(UserError, match="was removed or replaced"):
        driver.next_job()
