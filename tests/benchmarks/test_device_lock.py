"""What the device lock costs: microseconds a training step, and how long measurements and trainings wait.

pytest -s -m benchmark tests/benchmarks/test_device_lock.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workers import lock

pytestmark = pytest.mark.benchmark

NUM_TRAINERS = 3
NUM_MEASUREMENTS = 16
STEP_SECONDS = 0.01

TRAINER = f"""
import sys, time
from workers import lock
paused, steps, stop = 0.0, 0, time.monotonic() + float(sys.argv[1])
with lock.sharing(["device"]) as share:
    print("training", flush=True)
    while time.monotonic() < stop:
        paused += share.pause_if_wanted()
        time.sleep({STEP_SECONDS})
        steps += 1
print(steps, paused, flush=True)
"""


@pytest.fixture(autouse=True)
def own_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path))


def test_microseconds_a_step_when_nobody_measures():
    steps = 100_000
    with lock.sharing(["device"]) as share:
        start = time.perf_counter()
        for _ in range(steps):
            share.pause_if_wanted()
        seconds = time.perf_counter() - start
    print(json.dumps({"lock_us_a_step": round(seconds / steps * 1e6, 2)}))


def test_waits_of_measurements_beside_trainings():
    command = [sys.executable, "-c", TRAINER, "6"]
    trainers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(NUM_TRAINERS)]
    for trainer in trainers:
        assert trainer.stdout is not None
        assert trainer.stdout.readline() == "training\n"
    waits, measured = [], 0.0
    for _ in range(NUM_MEASUREMENTS):
        with lock.exclusive("device") as waited:
            waits.append(waited * 1e3)
            time.sleep(0.05)
            measured += 0.05
        time.sleep(0.1)
    paused = []
    for trainer in trainers:
        out, _ = trainer.communicate(timeout=60)
        paused.append(float(out.split()[1]))
    figures = {
        "trainers": NUM_TRAINERS,
        "measurements": NUM_MEASUREMENTS,
        "step_ms": STEP_SECONDS * 1e3,
        "worst_wait_ms": round(max(waits), 1),
        "mean_wait_ms": round(sum(waits) / len(waits), 1),
        "measured_seconds": round(measured, 2),
        "paused_seconds_a_trainer": [round(seconds, 2) for seconds in paused],
    }
    print(json.dumps(figures))
