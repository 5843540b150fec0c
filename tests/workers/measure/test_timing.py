"""The loops around a call, on a clock that the call itself moves."""

from __future__ import annotations

import gc

import pytest

from workers.measure import timing


class Clock:
    """Stands in for `time`: calls take what they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def perf_counter_ns(self) -> int:
        return round(self.now * 1e9)

    def thread_time(self) -> float:
        return self.now

    def lasting(self, durations):
        """A call whose n-th run takes the n-th of `durations` (seconds); the last one for ever after."""
        left = list(durations)

        def call() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


def nothing() -> None:
    pass


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    return made


def test_a_steady_call_stops_at_its_relative_error_but_not_before_a_quarter_second(clock):
    latency = timing.measure_latency(clock.lasting([0.001]), 1.5, 0.01, nothing)
    assert latency.stopped_by == "relative_error"
    assert latency.summary.median == pytest.approx(1.0)
    assert 0.25 <= clock.now < 0.4


def test_a_latency_that_straddles_its_limit_is_timed_for_longer_but_not_for_ever(clock):
    unsteady = [0.001, 0.0011] * 20000
    for limits, least, most in (([1.05], 6.0, 8.0), ([2.0, 0.5], 0.25, 1.6)):
        start = clock.now
        timing.measure_latency(clock.lasting(unsteady), 1.5, 0.1, nothing, limits)
        assert least <= clock.now - start < most


def test_an_unsteady_call_stops_when_its_time_is_up_and_says_so(clock):
    latency = timing.measure_latency(clock.lasting([0.001, 0.01] * 2000), 1.5, 0.001, nothing)
    assert latency.stopped_by == "max_seconds"
    assert 1.5 <= clock.now < 1.52


def test_a_call_longer_than_the_time_allowed_is_still_measured_three_times(clock):
    latency = timing.measure_latency(clock.lasting([4.0, 5.0, 6.0]), 1.5, 0.01, nothing)
    assert latency.summary.num_samples == 3
    assert latency.summary.median == 5000


def test_warm_up_ends_once_the_rate_is_stable(clock):
    timing.warm_up(clock.lasting([0.004] * 5 + [0.003] * 5 + [0.002]), 1.0, nothing)
    assert clock.now == pytest.approx(5 * 0.004 + 5 * 0.003 + 2 * 5 * 0.002)


def test_warm_up_ends_when_its_time_is_up_though_the_rate_still_changes(clock):
    timing.warm_up(clock.lasting([0.001 * 1.1**i for i in range(200)]), 0.5, nothing)
    assert 0.5 <= clock.now < 0.6


def test_throughput_grows_the_batch_while_it_pays(clock):
    seconds = {4: 0.002, 16: 0.004, 64: 0.0165, 256: 0.066}
    rate, size = timing.best_throughput(
        lambda n: (clock.lasting([seconds[n]]), nothing), 1, 1.0, 256, 10.0, nothing
    )
    assert (rate, size) == (pytest.approx(4000), 16)


def test_throughput_never_falls_under_that_of_the_latencys_own_batch(clock):
    rate, size = timing.best_throughput(
        lambda n: (clock.lasting([n * 0.002]), nothing), 1, 1.0, 64, 10.0, nothing
    )
    assert (rate, size) == (pytest.approx(1000), 1)


def test_throughput_does_not_start_what_does_not_fit_into_its_time(clock):
    timing.best_throughput(lambda n: (clock.lasting([n * 0.01]), nothing), 1, 10.0, 64, 0.1, nothing)
    assert clock.now < 0.1


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB.")]
)
def test_a_batch_too_large_for_memory_ends_the_growth(clock, error):
    def call_of(size: int):
        if size == 16:
            raise error
        return clock.lasting([0.001]), nothing

    assert timing.best_throughput(call_of, 1, 1.0, 64, 10.0, nothing) == (pytest.approx(4000), 4)


def test_another_error_in_a_larger_batch_is_not_hidden(clock):
    def call_of(size: int):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        timing.best_throughput(call_of, 1, 1.0, 64, 10.0, nothing)


def test_what_is_done_before_a_call_is_no_part_of_it(clock):
    def before() -> None:
        clock.now += 0.1

    found = timing.measure_latency(clock.lasting([0.01]), 2.0, 0.01, nothing, before=before)
    assert found.summary.median == pytest.approx(10)
    assert found.samples == pytest.approx([10.0] * found.summary.num_samples)
    assert clock.now >= 0.11 * found.summary.num_samples


def test_the_guard_against_hangs_hears_of_every_call(clock):
    beats = []
    timing.measure_latency(clock.lasting([0.01]), 0.5, 0.01, lambda: beats.append(clock.now))
    assert len(beats) >= 50


def test_garbage_collection_is_off_and_then_as_it_was():
    with timing.without_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with timing.without_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
