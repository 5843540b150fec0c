"""Resident memory of a process after each candidate that it measures and trains, as a worker does.

As a program: worker_memory.py CANDIDATES FOLDER prints MB, one line a candidate. Networks are drawn from all families
of the preset `tiny`, so that no two are alike.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import psutil

from spaces.registry import make_space
from spaces.spec import Task
from workers.job import Decision, Job, Kind, Status
from workers.perform import perform
from workers.settings import CostSettings, DataSettings, JobSettings, RecipeSettings


def main(candidates: int, folder: str) -> None:
    space = make_space(Task(image_size=8, channels=1, num_classes=10), "tiny")
    settings = JobSettings(
        DataSettings("digits", train_limit=300, val_limit=100),
        RecipeSettings(epochs=2),
        CostSettings(device="cpu", max_seconds=0.05),
    )
    rng, process = random.Random(0), psutil.Process()
    for number in range(1, candidates + 1):
        spec = space.spec(space.sample(rng))
        job = Job(number, 1, 1, Kind.MEASURE, "memory", number, spec, settings, folder)
        trained = replace(job, kind=Kind.TRAIN, first_epoch=1, last_epoch=1)
        for each in (job, trained):
            outcome = perform(each, lambda _: Decision.CONTINUE)
            assert outcome.status is Status.DONE, outcome.reason
        print(process.memory_info().rss / 1e6, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
