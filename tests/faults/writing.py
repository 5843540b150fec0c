"""Kills a process again and again while it writes checkpoints, and looks at what it left each time.

As a program: writing.py KILLS JOB, where JOB is a train job's JSON. A forked process saves generation after generation
under one name; every weight of a generation has its number. After each kill one line of JSON is printed: the newest
generation whose save had returned, the one that the file holds, and the names of unfinished files.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import select
import shutil
import signal
import struct
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from workers import checkpoint
from workers.job import CheckpointRef, Job
from workers.recipe import Training, compose

NUMBER = struct.Struct("q")
LONGEST_SAVES = 3.0
"""A kill comes within so many times the seconds that a save takes."""


def main(kills: int, job: Job) -> None:
    torch.set_num_threads(1)
    training = compose(job.spec, job.settings.recipe, 5, 0, torch.device("cpu"))
    _paint(training, 0)
    started = time.monotonic()
    relative = checkpoint.save(job, training, 1, "data").path
    longest = LONGEST_SAVES * (time.monotonic() - started)
    path, newest, rng = Path(job.artifacts, relative), 0, random.Random(0)
    for _ in range(kills):
        newest = max(newest, _killed_while_writing(job, training, newest + 1, rng.uniform(0, longest)))
        found = _generation(job, training, path, relative)
        partial = [other.name for other in path.parent.iterdir() if other != path]
        print(json.dumps({"returned": newest, "found": found, "partial": partial}), flush=True)
        for name in partial:
            shutil.rmtree(path.with_name(name))
        newest = max(newest, found)


def _killed_while_writing(job: Job, training: Training, generation: int, seconds: float) -> int:
    """The newest generation whose save had returned when the writer was killed; 0 where none had."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        while True:
            _paint(training, generation)
            checkpoint.save(job, training, 1, "data")
            os.write(writing, NUMBER.pack(generation))
            generation += 1
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(writing)
    told = b""
    while select.select([reading], [], [], 0)[0] and (more := os.read(reading, 65536)):
        told += more
    os.close(reading)
    return max((number for (number,) in NUMBER.iter_unpack(told)), default=0)


def _generation(job: Job, training: Training, path: Path, relative: str) -> int:
    """Loads what is there. Raises where it does not fit, or where not all weights are of one generation."""
    data = path.read_bytes()
    ref = CheckpointRef(relative, 1, hashlib.sha256(data).hexdigest(), len(data))
    checkpoint.load(replace(job, first_epoch=2, last_epoch=2, checkpoint=ref), training, "data")
    assert training.ema is not None
    values = [*training.model.parameters(), *training.ema.module.parameters()]
    (found,) = {number for value in values for number in value.unique().tolist()}
    return int(found)


def _paint(training: Training, generation: int) -> None:
    assert training.ema is not None
    with torch.no_grad():
        for parameter in (*training.model.parameters(), *training.ema.module.parameters()):
            parameter.fill_(generation)


if __name__ == "__main__":
    main(int(sys.argv[1]), Job.from_json(sys.argv[2]))
