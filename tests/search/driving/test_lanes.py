from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optuna
import pytest

from search.driver import Idle
from search.lanes import Lane, LanedDriver
from search.states import CandidateState
from search.store.models import Candidate
from search.study import Study
from workers.job import MEASURING, Job, Kind


def laned(bench: Any) -> LanedDriver:
    settings, plan = bench.config.search, bench.plan
    kwargs = bench.store.optuna_engine_kwargs
    storage = optuna.storages.RDBStorage(bench.store.optuna_url, engine_kwargs=kwargs)
    study = Study(storage, bench.config.name, plan.space, plan.objectives, settings.sampler, settings.seed)
    driver = LanedDriver(
        store=bench.store,
        study=study,
        search_id=bench.search_id,
        name=bench.config.name,
        plan=plan,
        device_id="cpu-of-tests-1t",
        artifacts=bench.artifacts,
    )
    driver.start()
    return driver


@pytest.fixture
def bench(make_bench: Callable[..., Any]) -> Any:
    settings = {"precision": "fp32", "memory_format": "contiguous", "compile": "off", "threads": 1}
    return make_bench(max_candidates=6, rungs="none", training={"epochs": 9, **settings}, baselines={})


def take(driver: LanedDriver, lane: Lane) -> Job:
    job = driver.next_of(lane)
    assert isinstance(job, Job)
    assert (job.kind in MEASURING) == (lane is Lane.MEASURE)
    return job


def ending(driver: LanedDriver, bench: Any, answer: Any) -> Any:
    """What the lane that trains is told, after a last look at the device."""
    job = driver.next_of(Lane.TRAIN)
    if isinstance(job, Job):
        assert job.kind is Kind.REFERENCE
        driver.finish(answer(job, bench.digest))
        job = driver.next_of(Lane.TRAIN)
    return job


def test_each_lane_gets_its_own_jobs_and_all_of_them_end(bench: Any, answer: Any) -> None:
    driver = laned(bench)
    kinds = []
    for _ in range(200):
        ended = False
        for lane in Lane:
            job = driver.next_of(lane)
            if isinstance(job, Job):
                assert lane.takes(job.kind) or job.kind is Kind.REFERENCE, (
                    "the last look at the device may be anyone's"
                )
                kinds.append(job.kind)
                driver.finish(answer(job, bench.digest))
            ended |= job is Idle.FINISHED
        if ended:
            break
    found = [row for row in bench.rows(Candidate) if row.number > 0]
    assert [row.state for row in found] == [CandidateState.FINISHED] * 6
    assert kinds.count(Kind.MEASURE) == kinds.count(Kind.TRAIN) == 6


def test_no_more_candidates_wait_for_a_measurement_than_one(bench: Any) -> None:
    driver = laned(bench)
    take(driver, Lane.MEASURE)
    for _ in range(3):
        assert driver.next_of(Lane.TRAIN) is Idle.WAIT
    assert len([row for row in bench.rows(Candidate) if row.number > 0]) == 1


def test_trainings_go_on_while_a_measurement_runs(bench: Any, answer: Any) -> None:
    driver = laned(bench)
    driver.finish(answer(take(driver, Lane.MEASURE), bench.digest))
    take(driver, Lane.MEASURE)
    training = take(driver, Lane.TRAIN)
    assert training.kind == Kind.TRAIN
    driver.finish(answer(training, bench.digest))


def test_a_lane_that_only_measures_never_ends_a_search_whose_trainings_wait(bench: Any, answer: Any) -> None:
    driver = laned(bench)
    for _ in range(6):
        driver.finish(answer(take(driver, Lane.MEASURE), bench.digest))
    assert driver.next_of(Lane.MEASURE) is Idle.WAIT
    for _ in range(6):
        driver.finish(answer(take(driver, Lane.TRAIN), bench.digest))
    assert driver.next_of(Lane.MEASURE) is Idle.WAIT
    assert ending(driver, bench, answer) is Idle.FINISHED


def test_it_drains_though_measurements_wait(bench: Any, answer: Any) -> None:
    driver = laned(bench)
    job = take(driver, Lane.MEASURE)
    driver.drain("asked to")
    assert driver.next_of(Lane.TRAIN) is Idle.WAIT, "the measurement runs"
    driver.finish(answer(job, bench.digest))
    assert ending(driver, bench, answer) is Idle.FINISHED
