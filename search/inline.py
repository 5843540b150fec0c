"""Runs a driver's jobs in this process, one at a time: the twin of the Ray engine that tests and debuggers use."""

from __future__ import annotations

import time

from search.driver import Driver, Idle
from workers.job import Outcome
from workers.perform import perform

WAIT_SECONDS = 1.0  # before the driver is asked again


def run(driver: Driver) -> None:
    """Returns when the driver has nothing left to do. A job that kills its process kills the search with it."""
    while (job := driver.next_job()) is not Idle.FINISHED:
        if isinstance(job, Idle):
            time.sleep(WAIT_SECONDS)
            continue
        outcome = perform(job, driver.progress)
        # Through JSON, as between processes, so that what only works in one process is found here.
        driver.finish(Outcome.from_json(outcome.to_json()))
