"""What repeated timings say: median with interval and error, percentiles, spread. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MIN_SAMPLES_FOR_P99 = 500
NUM_BLOCKS = 10
Z95 = 1.96


@dataclass(frozen=True)
class Summary:
    """Of n samples, in their unit. low, high: 95% interval of the median. relative_error: its standard error divided
    by it. spread: interquartile range divided by the median. p99 is None under 500 samples."""

    median: float
    low: float
    high: float
    relative_error: float
    p95: float
    p99: float | None
    spread: float
    num_samples: int


def summarise(samples: Sequence[float]) -> Summary:
    """The summary of at least one positive sample, given in the order in which they were taken.

    The interval is the median's distribution-free one between two order statistics (Conover, Practical Nonparametric
    Statistics, 3.2; at least 95% from 6 samples on). Timings drift, so that neighbours are alike and that interval
    too narrow: where the medians of ten consecutive blocks differ more than it allows, it is widened to theirs
    (never past the fastest and the slowest sample).
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    count, median = len(ordered), statistics.median(ordered)
    rank = max(1, math.floor((count - Z95 * math.sqrt(count)) / 2))
    low, high = ordered[rank - 1], ordered[count - rank]
    error = max((high - low) / (2 * Z95), _block_error(samples))
    return Summary(
        median=median,
        low=max(ordered[0], min(low, median - Z95 * error)),
        high=min(ordered[-1], max(high, median + Z95 * error)),
        relative_error=error / median,
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99) if count >= MIN_SAMPLES_FOR_P99 else None,
        spread=(percentile(ordered, 0.75) - percentile(ordered, 0.25)) / median,
        num_samples=count,
    )


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The `fraction` quantile of ascending samples, by linear interpolation."""
    position = (len(ordered) - 1) * fraction
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _block_error(samples: Sequence[float]) -> float:
    """Standard error of the median by the scatter of block medians; 0 where blocks would be under 5 samples."""
    size = len(samples) // NUM_BLOCKS
    if size < 5:
        return 0.0
    medians = [statistics.median(samples[i * size : (i + 1) * size]) for i in range(NUM_BLOCKS)]
    return statistics.stdev(medians) / math.sqrt(NUM_BLOCKS)
