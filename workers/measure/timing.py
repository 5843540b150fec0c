"""Timing one call by the host clock: warm-up, repeats, and the batch size with the best throughput."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from workers.measure.contention import Load, Watch
from workers.measure.statistics import Summary, summarise
from workers.memory_limit import is_out_of_memory

Work = Callable[[], object]

WARM_UP_SHARE = 1 / 3
WARM_UP_TOLERANCE = 0.03
MIN_SAMPLES = 50
MIN_SECONDS = 0.25
FEWEST_SAMPLES = 3
STRADDLING = 4
THROUGHPUT_GROWTH = 4
THROUGHPUT_GAIN = 1.05


@dataclass(frozen=True)
class Latency:
    """Milliseconds a call. stopped_by: `relative_error` or `max_seconds`. load: of the machine meanwhile. samples: of
    every call, in order."""

    summary: Summary
    stopped_by: str
    load: Load
    samples: tuple[float, ...] = ()


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Python's collector would stop calls at random; it is on again afterwards.

    What is there already is frozen, so that a collection asked for inside takes no third of a second to walk torch.
    """
    was_on = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def nothing() -> None:
    """For a `before` that is not needed."""


def time_call_ms(call: Work, before: Work = nothing) -> float:
    """before: what is done ahead of the call, outside the figure."""
    before()
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e6


def warm_up(call: Work, max_seconds: float, beat: Work, before: Work = nothing) -> None:
    """Calls until two windows of calls in a row take the same time within 3%, or `max_seconds` have gone.

    Clocks rise, caches fill and kernels are chosen meanwhile. A window is at least 5 calls and 10 ms.
    """
    end = time.perf_counter() + max_seconds
    previous = None
    while time.perf_counter() < end:
        window, window_end = [], time.perf_counter() + 0.01
        while (len(window) < 5 or time.perf_counter() < window_end) and time.perf_counter() < end:
            window.append(time_call_ms(call, before))
            beat()
        rate = statistics.median(window)
        if previous is not None and abs(rate - previous) <= WARM_UP_TOLERANCE * previous:
            return
        previous = rate


def measure_latency(
    call: Work,
    max_seconds: float,
    relative_error: float,
    beat: Work,
    limits_ms: Sequence[float] = (),
    before: Work = nothing,
) -> Latency:
    """Repeats a warm call until its median is known to `relative_error`, or `max_seconds` have gone.

    At least 50 samples over 0.25 s, as a short burst would miss slow changes; at least 3 even when time is up.
    limits_ms: upper bounds that the latency is judged by; while its interval holds one of them, it goes on for up to
    `STRADDLING` times `max_seconds`.
    """
    samples: list[float] = []
    start, watch = time.perf_counter(), Watch()
    min_seconds, check_at = min(MIN_SECONDS, max_seconds), MIN_SAMPLES
    while True:
        samples.append(time_call_ms(call, before))
        beat()
        elapsed = time.perf_counter() - start
        is_over = elapsed >= max_seconds and len(samples) >= FEWEST_SAMPLES
        if not is_over and (len(samples) < check_at or elapsed < min_seconds):
            continue
        summary = summarise(samples)
        is_known = summary.relative_error < relative_error
        straddles = any(summary.low <= limit < summary.high for limit in limits_ms)
        if (is_known or is_over) and not (straddles and elapsed < STRADDLING * max_seconds):
            stopped_by = "relative_error" if is_known else "max_seconds"
            return Latency(summary, stopped_by, watch.load(), tuple(samples))
        check_at = len(samples) * 5 // 4


def best_throughput(
    call_of: Callable[[int], tuple[Work, Work]],
    batch_size: int,
    latency_ms: float,
    max_batch_size: int,
    seconds: float,
    beat: Work,
) -> tuple[float, int]:
    """Images a second at the best of a few batch sizes, and that size.

    Starts from the latency's batch and grows by four while each size gains 5% and the next still fits into what is
    left of `seconds`. call_of: a batch size to a call and what is done before each; one that runs out of memory ends
    the growth.
    """
    end = time.perf_counter() + seconds
    best, size = (batch_size / latency_ms * 1e3, batch_size), batch_size
    while (size := size * THROUGHPUT_GROWTH) <= max_batch_size:
        expected = 3 * size / best[0]
        if time.perf_counter() + expected > end:
            break
        try:
            call, before = call_of(size)
            call()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            break
        share_end = time.perf_counter() + seconds / 4
        times = [time_call_ms(call, before)]
        while len(times) < 2 or (len(times) < 30 and time.perf_counter() < min(share_end, end)):
            times.append(time_call_ms(call, before))
            beat()
        rate = size / statistics.median(times) * 1e3
        gained = rate > best[0] * THROUGHPUT_GAIN
        best = max(best, (rate, size))
        if not gained:
            break
    return best
