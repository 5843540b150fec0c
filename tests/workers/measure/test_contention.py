"""What other processes take of the machine while something is timed."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from workers.measure.contention import Load, Watch

SPIN = "import time\nend = time.time() + 30\nwhile time.time() < end: pass"


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_another_process_that_works_is_noticed_and_our_own_work_is_not_taken_for_it() -> None:
    quiet = Watch()
    spin(0.5)
    without = quiet.load()
    rogue = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        spin(0.5)
        watch = Watch()
        spin(1.0)
        beside = watch.load()
    finally:
        rogue.kill()
        rogue.wait()
    assert beside.is_contended(1)
    assert beside.others_share > 0.5
    assert 0.5 <= without.seconds < 5


@pytest.mark.parametrize(
    ("load", "threads", "is_contended"),
    [
        (Load(1.0, 0.99, 0.05), 1, False),
        (Load(1.0, 0.90, 0.05), 1, True),
        (Load(1.0, 0.90, 0.05), 2, False),
        (Load(1.0, 0.99, 0.30), 2, True),
        (Load(0.05, 0.99, 0.6), 1, False),
    ],
    ids=[
        "quiet",
        "kept off",
        "two threads pause by themselves",
        "others work",
        "less than the ticks can tell",
    ],
)
def test_what_counts_as_contended(load: Load, threads: int, is_contended: bool) -> None:
    assert load.is_contended(threads) == is_contended
