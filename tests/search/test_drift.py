"""Which measurements lie between readings that differ."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from search.drift import MOST_AGAIN, Reading, Taken, differ, judge, words


def readings(*ms: float, error: float = 0.001) -> list[Reading]:
    """At places 10, 20, ...: measurements of the tests lie between."""
    return [Reading(10 * (index + 1), value, error * value) for index, value in enumerate(ms)]


def test_readings_differ_by_more_than_three_per_cent_and_more_than_three_standard_errors():
    assert not differ(Reading(0, 1.0, 0.001), Reading(1, 1.029, 0.001))
    assert differ(Reading(0, 1.0, 0.001), Reading(1, 1.031, 0.001))
    assert differ(Reading(0, 1.0, 0.001), Reading(1, 0.969, 0.001))
    assert not differ(Reading(0, 1.0, 0.03), Reading(1, 1.1, 0.03)), "the difference is known to 0.042 only"
    assert differ(Reading(0, 1.0, 0.03), Reading(1, 1.2, 0.03))


def test_what_lies_between_readings_that_differ_is_measured_again_and_nothing_else():
    taken = [Taken(11, 1), Taken(12, 2), Taken(21, 3), Taken(31, 4)]
    found = judge(readings(1.0, 1.0, 1.2), taken)
    assert (found.drifted, found.again, found.given_up) == ({21}, (3,), ())


def test_the_references_own_figure_belongs_to_what_comes_after_it_and_what_came_first_as_well():
    taken = [Taken(4, 7), Taken(10, 1), Taken(15, 2)]
    assert judge(readings(1.0, 1.2), taken).again == (7, 1, 2)
    assert judge(readings(1.0, 1.0), taken).drifted == frozenset()


def test_a_candidate_is_measured_again_twice_and_then_given_up():
    one = [Taken(11, 1)]
    two = [*one, Taken(21, 1)]
    three = [*two, Taken(31, 1)]
    assert judge(readings(1.0, 1.2), one).again == (1,)
    assert judge(readings(1.0, 1.2, 1.5), two).again == (1,)
    found = judge(readings(1.0, 1.2, 1.5, 1.9), three)
    assert (found.again, found.given_up) == ((), (1,))
    assert judge(readings(1.0, 1.2, 1.5, 1.5), three).given_up == (), "the last of them is good"


def histories() -> st.SearchStrategy[tuple[list[Reading], list[Taken]]]:
    """Readings and measurements in one order, as they may have come."""
    step = st.one_of(st.integers(1, 6), st.floats(0.5, 2.0))

    def place(steps: Sequence[int | float]) -> tuple[list[Reading], list[Taken]]:
        found: tuple[list[Reading], list[Taken]] = ([], [])
        for at, each in enumerate(steps):
            if isinstance(each, float):
                found[0].append(Reading(at, each, 0.001))
            else:
                found[1].append(Taken(at, each))
        return found

    return st.lists(step, max_size=40).map(place)


@given(histories())
def test_a_measurement_drifted_exactly_when_the_readings_around_it_differ(history):
    """Against a plain search for the nearest readings on both sides."""
    read, taken = history
    found = judge(read, taken)
    for one in taken:
        before = [reading for reading in read if reading.at <= one.at] or read[:1]
        after = [reading for reading in read if reading.at > one.at and reading is not before[-1]]
        expected = bool(before and after) and differ(before[-1], after[0])
        assert (one.at in found.drifted) == expected


@given(histories())
def test_nobody_is_measured_again_who_need_not_be_or_who_was_twice(history):
    read, taken = history
    found = judge(read, taken)
    last = {one.candidate: one.at for one in taken}
    counts = {key: sum(one.candidate == key for one in taken) for key in last}
    assert len(set(found.again)) == len(found.again)
    assert set(found.again) | set(found.given_up) == {key for key, at in last.items() if at in found.drifted}
    assert all(counts[key] <= MOST_AGAIN for key in found.again)
    assert all(counts[key] > MOST_AGAIN for key in found.given_up)


@given(histories(), st.integers(0, 40))
def test_what_was_judged_once_is_not_judged_otherwise_by_what_comes_later(history, end):
    """So that flags which are written never have to be taken back, and a resumed search agrees with itself."""
    read, taken = history
    cut = [reading for reading in read if reading.at < end], [one for one in taken if one.at < end]
    assert judge(*cut).drifted <= judge(read, taken).drifted


@given(histories())
def test_measuring_again_comes_to_an_end_however_the_device_behaves(history):
    """Every round measures again what it is told to, and reads something different once more."""
    read, taken = history
    place, rounds = 100, 0
    while (found := judge(read, taken)).again:
        taken = [*taken, *(Taken(place + index, key) for index, key in enumerate(found.again))]
        place += 100
        read = [*read, Reading(place - 1, 1.0 + rounds % 2, 0.001)]
        rounds += 1
        assert rounds <= MOST_AGAIN + 1


def test_words_say_where_it_began_and_ended_and_whether_that_is_alike():
    assert words("resnet", readings(0.461, 0.466)) == (
        "reference resnet: 0.461 ms at the start, 0.466 at the end (within 3%)"
    )
    assert words("resnet", readings(0.461)) == (
        "reference resnet: 0.461 ms at the start, no other reading yet"
    )
    assert words("resnet", readings(0.4, 0.5, 0.5)) == (
        "reference resnet: 0.4 ms at the start, 0.5 at the end of 3 readings "
        "(up to 25% between readings; what lay between was measured again)"
    )
    assert "within 3 standard errors" in words("resnet", readings(0.4, 0.42, error=0.03))
    assert words("#1", [], contended=2) == ("reference #1: 2 readings, all disturbed by other work")
