from __future__ import annotations

import itertools
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from workers import device as devices
from workers import lock
from workers.errors import DeviceError

HOLDER = """
    import sys, time
    from workers import lock
    with lock.exclusive("dev"):
        print("held", flush=True)
        sys.stdin.readline()
"""

TRAINER = """
    import sys, time
    from workers import lock
    end = time.monotonic() + float(sys.argv[2])
    with lock.sharing(["dev"]) as share, open(sys.argv[1], "a", buffering=1) as log:
        print("training", flush=True)
        while time.monotonic() < end:
            share.pause_if_wanted()
            began = time.monotonic()
            time.sleep(0.005)
            print(began, time.monotonic(), file=log)
"""

MEASURER = """
    import sys, time
    from workers import lock
    with open(sys.argv[1], "a", buffering=1) as log:
        for _ in range(int(sys.argv[2])):
            with lock.exclusive("dev") as waited:
                began = time.monotonic()
                time.sleep(0.02)
                print(began, time.monotonic(), waited, file=log)
            time.sleep(0.01)
"""


def intervals(path: Path) -> list[tuple[float, float]]:
    rows = (line.split() for line in path.read_text().splitlines())
    return [(float(row[0]), float(row[1])) for row in rows]


def overlap(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def said(process) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def release(holder) -> None:
    holder.stdin.write("\n")
    holder.stdin.flush()


def freed_within(seconds: float, device: str = "dev") -> bool:
    """Whether this process gets the device within `seconds`."""
    got = threading.Event()

    def take() -> None:
        with lock.exclusive(device):
            got.set()

    threading.Thread(target=take, daemon=True).start()
    return got.wait(seconds)


def test_trainings_never_step_while_a_measurement_runs_and_measurements_never_meet(tmp_path, start):
    steps, measured = tmp_path / "steps", tmp_path / "measured"
    trainers = [start(TRAINER, str(steps), "1.5") for _ in range(3)]
    assert [said(process) for process in trainers] == ["training"] * 3
    measurers = [start(MEASURER, str(measured), "6") for _ in range(2)]
    assert [process.wait(30) for process in trainers + measurers] == [0] * 5

    stretches = sorted(intervals(measured))
    assert len(stretches) == 12
    assert not any(overlap(a, b) for a, b in itertools.pairwise(stretches))
    trained = intervals(steps)
    assert len(trained) > 50
    assert not any(overlap(step, stretch) for step in trained for stretch in stretches)


def test_a_trainer_waits_for_the_measurement_and_says_how_long(start):
    holder = start(HOLDER)
    assert said(holder) == "held"
    threading.Timer(0.3, release, [holder]).start()
    began = time.monotonic()
    with lock.sharing(["dev"]) as share:
        assert time.monotonic() - began > 0.2
        assert share.pause_if_wanted() == 0.0


def test_a_killed_measurer_frees_the_device_at_once(start):
    holder = start(HOLDER)
    assert said(holder) == "held"
    assert not freed_within(0.2)
    holder.send_signal(signal.SIGKILL)
    with lock.exclusive("dev") as waited:
        assert waited < 1


def test_a_killed_trainer_frees_the_device_though_a_forked_child_of_it_lives(start):
    trainer = start("""
        import os, time
        from workers import lock
        with lock.sharing(["dev"]):
            if os.fork() == 0:
                time.sleep(2)
                os._exit(0)
            print("training", flush=True)
            time.sleep(60)
    """)
    assert said(trainer) == "training"
    assert not freed_within(0.2)
    trainer.send_signal(signal.SIGKILL)
    with lock.exclusive("dev") as waited:
        assert waited < 1


def test_a_measurement_that_a_killed_one_was_waiting_with_still_gets_its_turn(start):
    first = start(HOLDER)
    assert said(first) == "held"
    second = start(HOLDER)
    time.sleep(0.3)
    second.kill()
    release(first)
    with lock.exclusive("dev") as waited:
        assert waited < 1


def test_threads_of_one_process_exclude_each_other():
    steps: list[tuple[float, float]] = []
    stop = threading.Event()

    def train() -> None:
        with lock.sharing(["dev"]) as share:
            while not stop.is_set():
                share.pause_if_wanted()
                began = time.monotonic()
                time.sleep(0.002)
                steps.append((began, time.monotonic()))

    thread = threading.Thread(target=train)
    thread.start()
    measured = []
    for _ in range(5):
        with lock.exclusive("dev"):
            began = time.monotonic()
            time.sleep(0.02)
            measured.append((began, time.monotonic()))
        time.sleep(0.01)
    stop.set()
    thread.join()
    assert len(steps) > 5
    assert not any(overlap(step, stretch) for step in steps for stretch in measured)


def test_one_process_can_train_and_then_measure_and_measure_again():
    for _ in range(2):
        with lock.sharing(["dev", "other"]) as share:
            assert share.pause_if_wanted() == 0.0
        with lock.exclusive("dev") as waited:
            assert waited < 0.5


def test_a_thread_that_holds_the_device_is_told_rather_than_hung():
    with lock.sharing(["dev"]), pytest.raises(RuntimeError, match="holds the device already"):
        with lock.exclusive("dev"):
            pass
    with lock.exclusive("dev"):
        pass


def test_work_queued_on_the_device_is_settled_before_it_is_let_go(start):
    settled: list[float] = []
    with lock.sharing(["dev"], settle=lambda: settled.append(time.monotonic())) as share:
        holder = start(HOLDER)
        while not share._locks[0].wanted():
            time.sleep(0.01)
        assert settled == []
        release(holder)
        assert share.pause_if_wanted() > 0
        assert len(settled) == 1
    assert len(settled) == 2


def test_the_lock_survives_that_its_folder_is_cleared(start, runtime_folder):
    with lock.sharing(["dev"]) as share:
        shutil.rmtree(runtime_folder)
        holder = start(HOLDER)
        assert said(holder) == "held"  # on files of its own
        time.sleep(1.1)
        threading.Timer(0.3, release, [holder]).start()
        assert share.pause_if_wanted() > 0.2  # and this training has noticed within a second


def test_the_folder_is_the_users_own_and_private(runtime_folder):
    with lock.exclusive("dev"):
        assert runtime_folder.stat().st_mode & 0o777 == 0o700
        assert (runtime_folder / "dev.lock").stat().st_mode & 0o777 == 0o600


def test_without_the_variable_the_folder_is_under_the_users_runtime_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("PARETOVIT_RUNTIME_DIR")
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert lock.runtime_folder().name == "paretovit"
    assert lock.runtime_folder().is_absolute()


def test_a_folder_that_cannot_be_made_is_named_with_the_remedy(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path / "file"))
    with pytest.raises(DeviceError, match=r"PARETOVIT_RUNTIME_DIR=.*/file: .*/file is no folder; name one"):
        with lock.exclusive("dev"):
            pass


def test_a_forked_child_does_not_believe_that_it_holds_what_its_parent_holds():
    with lock.exclusive("dev"):
        pid = os.fork()
        if pid == 0:
            os._exit(1 if freed_within(0.2) else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


MEASURING = """
    import sys
    from spaces.spec import ArchSpec
    from workers.job import Job, Kind
    from workers.measure import timing
    from workers.perform import perform
    from workers.settings import CostSettings, DataSettings, JobSettings

    warm_up = timing.warm_up
    def told(*args):
        print("measuring", flush=True)
        warm_up(*args)
    timing.warm_up = told
    spec = ArchSpec("vit_tiny_patch16_224", {"img_size": 8, "patch_size": 2, "in_chans": 1, "num_classes": 10}, 8)
    cost = CostSettings(device="cpu", max_seconds=60, relative_error=1e-6)
    job = Job(1, 1, 1, Kind.MEASURE, "s", 1, spec, JobSettings(DataSettings("digits"), cost=cost), sys.argv[1])
    perform(job, lambda _: None)
"""


def test_a_measure_job_that_is_killed_frees_the_device_within_a_second(start, tmp_path):
    """The whole job, in the middle of its timing: it would go on for a minute."""
    job = start(MEASURING, str(tmp_path))
    assert said(job) == "measuring"
    device = devices.cpu_lock()
    assert not freed_within(0.2, device)
    job.send_signal(signal.SIGKILL)
    with lock.exclusive(device) as waited:
        assert waited < 1
