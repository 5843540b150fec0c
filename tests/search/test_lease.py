from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import dataclass

from search import lease


@dataclass(frozen=True)
class Held:
    owner_host: str | None
    owner_boot: str | None
    owner_pid: int | None
    owner_started: float | None
    beat_time: float | None = None


def held_by_this_process() -> Held:
    me = lease.this_process()
    return Held(me.host, me.boot, me.pid, me.started)


def test_nobody_drives_a_search_without_owner() -> None:
    assert not lease.alive(Held(None, None, None, None))


def test_a_running_owner_of_this_host_is_alive_however_old_its_beat() -> None:
    assert lease.alive(dataclasses.replace(held_by_this_process(), beat_time=0.0))


def test_an_ended_owner_of_this_host_is_dead_at_once() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    ended = dataclasses.replace(held_by_this_process(), owner_pid=process.pid, beat_time=1e12)
    assert not lease.alive(ended)


def test_a_process_id_that_was_given_again_is_another_owner() -> None:
    mine = held_by_this_process()
    assert mine.owner_started is not None
    assert not lease.alive(dataclasses.replace(mine, owner_started=mine.owner_started - 60))


def test_an_owner_of_another_boot_or_host_lives_for_one_ttl_after_its_beat() -> None:
    for change in ({"owner_host": "elsewhere"}, {"owner_boot": "before"}):
        far = dataclasses.replace(held_by_this_process(), **change, beat_time=1000.0)
        assert lease.alive(far, now=1000.0 + lease.TTL_SECONDS - 1)
        assert not lease.alive(far, now=1000.0 + lease.TTL_SECONDS)
