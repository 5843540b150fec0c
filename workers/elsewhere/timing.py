"""Timing one call, as `workers.measure.timing` does it. Standard library alone: it is carried to other machines."""

from __future__ import annotations

import statistics as plain
import time
from collections.abc import Callable
from dataclasses import dataclass

from workers.measure.statistics import Summary, summarise

Work = Callable[[], object]

WARM_UP_SHARE = 1 / 3
WARM_UP_TOLERANCE = 0.03
MIN_SAMPLES = 50
MIN_SECONDS = 0.25
FEWEST_SAMPLES = 3
THROUGHPUT_SHARE = 0.3
THROUGHPUT_GROWTH = 4
THROUGHPUT_GAIN = 1.05
MAX_BATCH_SIZE = 64


@dataclass(frozen=True)
class Latency:
    """Milliseconds a call. stopped_by: `relative_error` or `max_seconds`."""

    summary: Summary
    stopped_by: str


def time_call_ms(call: Work) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e6


def warm_up(call: Work, max_seconds: float) -> None:
    """Calls until two windows of 5 calls and 10 ms take the same time within 3%, or `max_seconds` have gone."""
    end = time.perf_counter() + max_seconds
    previous = None
    while time.perf_counter() < end:
        window, window_end = [], time.perf_counter() + 0.01
        while (len(window) < 5 or time.perf_counter() < window_end) and time.perf_counter() < end:
            window.append(time_call_ms(call))
        rate = plain.median(window)
        if previous is not None and abs(rate - previous) <= WARM_UP_TOLERANCE * previous:
            return
        previous = rate


def measure_latency(call: Work, max_seconds: float, relative_error: float) -> Latency:
    """Repeats a warm call until its median is known to `relative_error`, or `max_seconds` have gone; at least 50 times
    over 0.25 s, and at least 3 times even when time is up."""
    samples: list[float] = []
    start = time.perf_counter()
    min_seconds, check_at = min(MIN_SECONDS, max_seconds), MIN_SAMPLES
    while True:
        samples.append(time_call_ms(call))
        elapsed = time.perf_counter() - start
        is_over = elapsed >= max_seconds and len(samples) >= FEWEST_SAMPLES
        if not is_over and (len(samples) < check_at or elapsed < min_seconds):
            continue
        summary = summarise(samples)
        is_known = summary.relative_error < relative_error
        if is_known or is_over:
            return Latency(summary, "relative_error" if is_known else "max_seconds")
        check_at = len(samples) * 5 // 4


def best_throughput(
    call_of: Callable[[int], Work], batch_size: int, latency_ms: float, seconds: float
) -> tuple[float, int]:
    """Images a second at the best of a few batch sizes, and that size: grown by four while each gains 5% and the next
    still fits into what is left of `seconds`."""
    end = time.perf_counter() + seconds
    best, size = (batch_size / latency_ms * 1e3, batch_size), batch_size
    while (size := size * THROUGHPUT_GROWTH) <= MAX_BATCH_SIZE:
        if time.perf_counter() + 3 * size / best[0] > end:
            break
        call = call_of(size)
        call()
        share_end = time.perf_counter() + seconds / 4
        times = [time_call_ms(call)]
        while len(times) < 2 or (len(times) < 30 and time.perf_counter() < min(share_end, end)):
            times.append(time_call_ms(call))
        rate = size / plain.median(times) * 1e3
        gained = rate > best[0] * THROUGHPUT_GAIN
        best = max(best, (rate, size))
        if not gained:
            break
    return best
