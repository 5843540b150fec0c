from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.parking import why_drain
from search.quarantine import Quarantine, Tried


def note(quarantine: Quarantine, *tries: Tried, hosts: str = "abc") -> list[str | None]:
    return [quarantine.note(tried, lambda: list(hosts)) for tried in tries]


def bad(job: int, host: str = "a", device: str | None = "gpu") -> Tried:
    return Tried(job, host, device, "CUDA error")


def good(job: int, host: str = "a") -> Tried:
    return Tried(job, host, "gpu", None)


def test_a_machine_that_fails_two_jobs_in_a_row_is_in_quarantine_with_the_reason() -> None:
    quarantine = Quarantine()
    assert note(quarantine, bad(1), bad(2)) == [
        None,
        "a (gpu) has failed 2 jobs in a row and gets no more until the search is resumed: CUDA error",
    ]
    assert quarantine.hosts == {"a": "CUDA error"}


@pytest.mark.parametrize(
    "tries",
    [(bad(1), bad(1), bad(1)), (bad(1), good(2), bad(3)), (bad(1), bad(2, "b"))],
    ids=["one job", "one done between", "another machine"],
)
def test_what_is_not_two_jobs_in_a_row_on_one_machine_is_no_reason(tries: tuple[Tried, ...]) -> None:
    quarantine = Quarantine()
    note(quarantine, *tries)
    assert not quarantine.hosts


def test_a_worker_that_died_counts_for_the_device_that_its_machine_last_reported_from() -> None:
    quarantine = Quarantine()
    note(quarantine, good(1), bad(2, device=None), bad(3))
    assert list(quarantine.hosts) == ["a"]


def test_two_devices_of_a_machine_are_told_apart() -> None:
    quarantine = Quarantine()
    note(quarantine, bad(1, device="cpu"), bad(2, device="gpu"))
    assert not quarantine.hosts


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from("abc"), st.booleans()), max_size=40))
def test_the_last_machine_is_never_put_in_quarantine(tries: list[tuple[int, str, bool]]) -> None:
    quarantine = Quarantine()
    for job, host, fails in tries:
        note(quarantine, bad(job, host) if fails else good(job, host))
    assert len(quarantine.hosts) <= 2
    assert quarantine.left("abc") == 3 - len(quarantine.hosts)


def test_a_job_that_failed_gives_way_to_others_only_where_they_can_tell_something() -> None:
    alone, several = Quarantine(), Quarantine()
    note(alone, bad(1), hosts="a")
    note(several, bad(1))
    assert (alone.suspects, several.suspects) == (set(), {1})
    note(several, good(1, "b"))
    assert several.suspects == set()


@pytest.mark.parametrize(
    ("parked", "works", "machines", "drains"),
    [(1, False, 1, True), (1, True, 1, False), (2, True, 1, True), (2, False, 2, False), (3, True, 2, True)],
)
def test_a_search_rests_when_more_jobs_are_set_aside_than_there_are_machines(
    parked: int, works: bool, machines: int, drains: bool
) -> None:
    assert (why_drain(parked, works, machines, "no space") is not None) is drains
