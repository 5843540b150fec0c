"""Whatever a candidate does, its job ends in an outcome with a reason, or its process ends at once."""

from __future__ import annotations

import signal

import pytest

from workers.job import Decision, EpochReport, Kind, Outcome, Status
from workers.perform import perform


def go_on(report: EpochReport) -> Decision:
    return Decision.CONTINUE


@pytest.mark.parametrize("kind", [Kind.MEASURE, Kind.TRAIN])
def test_a_sound_network_is_done(make_job, kind):
    outcome = perform(make_job("fault_none", kind), go_on)
    assert (outcome.status, outcome.reason) == (Status.DONE, None)


@pytest.mark.parametrize(
    "model, reason",
    [
        ("fault_raises", "ValueError: the layer does not like its input"),
        ("fault_raises_in_build", "ValueError: these arguments do not go together"),
        ("fault_nan", "the network returned NaN or infinite values"),
        ("fault_shape", "the network returned [1, 10, 1] for 1 images, not [1, classes]"),
        ("fault_memory", "out of memory: asked for 70,368,744 MB, more than a job may take here"),
        ("no_such_model", "ValueError: model 'no_such_model' is not an entry point of timm"),
    ],
)
def test_a_faulty_candidate_fails_its_measurement_for_a_reason_in_one_line(make_job, model, reason):
    outcome = perform(make_job(model), go_on)
    assert outcome.status is Status.FAILED
    assert outcome.reason is not None
    assert outcome.reason.startswith(reason)
    assert "\n" not in outcome.reason
    assert outcome.detail is not None
    assert "Traceback" in outcome.detail


@pytest.mark.parametrize(
    "model, reason",
    [
        ("fault_raises_in_training", "ValueError: the layer does not like its input"),
        ("fault_nan_in_training", "loss nan at step 1 is not finite"),
    ],
)
def test_a_candidate_that_goes_wrong_only_in_training_fails_there(make_job, model, reason):
    assert perform(make_job(model), go_on).status is Status.DONE
    outcome = perform(make_job(model, Kind.TRAIN), go_on)
    assert outcome.status is Status.FAILED
    assert outcome.reason is not None
    assert outcome.reason.startswith(reason)


def test_a_candidate_that_takes_memory_bit_by_bit_is_stopped_at_the_jobs_share(make_job, monkeypatch):
    monkeypatch.setenv("PARETOVIT_JOB_MEMORY_MB", "300")
    outcome = perform(make_job("fault_memory_slowly"), go_on)
    assert outcome.status is Status.FAILED
    assert outcome.reason is not None
    assert outcome.reason.startswith("out of memory")
    assert outcome.notes["infeasible"]
    assert perform(make_job("fault_none"), go_on).status is Status.DONE, "the memory is free again"


@pytest.mark.parametrize(
    "model, reason", [("fault_disk_full", "No space left"), ("fault_device", "CUDA error")]
)
def test_what_the_machine_is_to_blame_for_is_an_error_worth_a_retry(make_job, model, reason):
    outcome = perform(make_job(model), go_on)
    assert outcome.status is Status.ERROR
    assert outcome.reason is not None
    assert reason in outcome.reason
    assert outcome.notes.get("device_lost", False) is (model == "fault_device")


def test_an_outcome_names_its_job_and_where_it_ran_also_when_it_failed(make_job):
    outcome = perform(make_job("fault_raises"), go_on)
    assert (outcome.job, outcome.attempt, outcome.lease) == (3, 2, 5)
    assert outcome.pid > 0
    assert outcome.host
    assert outcome.seconds > 0
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_a_segfault_kills_the_process_and_leaves_a_trace(make_job, perform_apart):
    ended = perform_apart(make_job("fault_segfault"))
    assert ended.code == -signal.SIGSEGV
    assert "Segmentation fault" in ended.errors
    assert "_segfault" in ended.errors


@pytest.mark.parametrize("model", ["fault_hang", "fault_hang_holding_the_gil"])
def test_a_hang_ends_the_process_within_the_limit_of_a_step(make_job, perform_apart, model):
    ended = perform_apart(make_job(model, step_seconds=4.0))
    assert ended.code == 1
    assert "Timeout" in ended.errors
    assert "_hang" in ended.errors


def test_after_a_fault_the_same_process_still_measures(make_job):
    for model in ("fault_raises", "fault_nan", "fault_memory"):
        perform(make_job(model), go_on)
    outcome = perform(make_job("fault_none"), go_on)
    assert outcome.status is Status.DONE
