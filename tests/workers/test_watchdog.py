from __future__ import annotations

import time

import pytest

from workers.watchdog import Watchdog

SILENT = """
    import time
    from workers.watchdog import Watchdog
    with Watchdog(0.5):
        time.sleep(30)
"""

HOLDING_THE_GIL = """
    import ctypes
    from workers.watchdog import Watchdog
    with Watchdog(0.5):
        ctypes.PyDLL(None).sleep(30)
"""


@pytest.mark.parametrize("code", [SILENT, HOLDING_THE_GIL])
def test_a_hang_ends_the_process_and_says_where(start, code):
    began = time.monotonic()
    process = start(code)
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert process.returncode == 1
    assert "Timeout" in errors
    assert "line 5" in errors


def test_beats_keep_it_quiet_and_the_end_of_the_block_cancels_it(start):
    process = start("""
        import time
        from workers.watchdog import Watchdog
        with Watchdog(0.4) as watchdog:
            for _ in range(8):
                time.sleep(0.1)
                watchdog.beat()
        time.sleep(0.8)
    """)
    assert process.wait(20) == 0


def test_waiting_for_others_is_no_hang_but_the_guard_is_back_afterwards(start):
    process = start("""
        import time
        from workers.watchdog import Watchdog
        with Watchdog(0.3) as watchdog:
            with watchdog.suspended():
                time.sleep(0.8)
            print("waited", flush=True)
            time.sleep(30)
    """)
    out, _ = process.communicate(timeout=20)
    assert out.strip() == "waited"
    assert process.returncode == 1


def test_a_beat_after_the_block_does_not_arm_it_again():
    with Watchdog(0.2) as watchdog:
        pass
    watchdog.beat()
    time.sleep(0.4)
