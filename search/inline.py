"""Runs a driver's jobs in this process, one at a time: the twin of the Ray engine that tests and debuggers use."""

from __future__ import annotations

from search.driver import Driver, Idle
from workers.job import Outcome
from workers.perform import perform


def run(driver: Driver) -> None:
    """Returns when the driver has nothing left to do. A job that kills its process kills the search with it."""
    while not isinstance(job := driver.next_job(), Idle):
        outcome = perform(job, driver.progress)
        # Through JSON, as between processes, so that what only works in one process is found here.
        driver.finish(Outcome.from_json(outcome.to_json()))
