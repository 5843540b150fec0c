"""The measurement protocol `host-2`: what one architecture costs on one device.

Torch's threads are set as the settings say and Python's garbage collector is off meanwhile.

1. The network is built with random non-zero weights, and converted where the runtime is not torch; the clock runs
   (`build_seconds`), the device is still shared.
2. Under the device's exclusive lock: the first call; warm-up until the rate is stable; repeats of one call (input
   copy included, synchronised, host clock) until the median is known well enough; throughput at a few larger
   batches. The input is the same each time, so that caches are hot.
3. Where work that is not ours disturbed step 2 on a CPU, it is done again, at most twice; the least disturbed one
   counts, and is flagged where it was disturbed too.
4. Peak memory, with the device shared again: what other processes do does not change it.

The name changes whenever figures of before and after could differ for a reason other than the network.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import metadata

import numpy as np
import timm
import torch
from torch import Tensor

from spaces.spec import ArchSpec
from workers import lock
from workers.device import Device, resolve
from workers.errors import DeviceError
from workers.job import Measurement
from workers.measure import PROTOCOL, inputs, malloc, memory, timing
from workers.runtimes import torch_runtime
from workers.runtimes.torch_runtime import Model
from workers.settings import CostSettings, Runtime

Timings = tuple[float, timing.Latency, tuple[float, int]]
"""First call in ms, latency, and (images a second, batch size)."""

THROUGHPUT_SHARE = 0.3
MEMORY_SHARE = 0.15
MAX_REPEATS = 2
MAX_BATCH_SIZE = {"cpu": 64, "cuda": 1024}


def measure(
    spec: ArchSpec,
    cost: CostSettings,
    images: np.ndarray | None = None,
    beat: Callable[[], object] = lambda: None,
    waiting: lock.Waiting = nullcontext,
    latency_limits: Sequence[float] = (),
) -> Measurement:
    """Measures one architecture; it takes about twice `cost.max_seconds`, unless single calls are longer, its latency
    straddles a limit, or other work disturbs it.

    images: uint8 [n, height, width, channels], real ones to feed it; noise without. beat: called between calls.
    waiting: entered while other work has the device. latency_limits: upper bounds in ms that the latency will be judged
    by; one that lies in its interval has it timed for up to four times as long.
    Raises DeviceError for a device that is not here, CandidateError for an output that is no row of finite scores an
    image, and what building and calling raise.
    """
    start = time.perf_counter()
    device = resolve(cost.device, cost.threads)
    malloc.settle_threshold()
    pixels = inputs.prepare(spec, images)
    with _threads(cost.threads), torch.inference_mode(), timing.without_garbage_collection():
        build_start = time.perf_counter()
        model = _load(spec, device, cost, pixels)
        model.synchronize()
        build_seconds = time.perf_counter() - build_start
        beat()
        first_call_ms, latency, throughput = _undisturbed(
            device, cost, partial(_timings, model, pixels, cost, beat, latency_limits), waiting
        )
        beat()
        peak_mb = memory.peak_memory_mb(
            model, inputs.batch(pixels, cost.batch_size), cost.max_seconds * MEMORY_SHARE
        )
    times = latency.summary
    return Measurement(
        **_conditions(device, cost),
        latency_ms=times.median,
        latency_ms_low=times.low,
        latency_ms_high=times.high,
        latency_ms_p95=times.p95,
        latency_ms_p99=times.p99,
        latency_ms_spread=times.spread,
        latency_relative_error=times.relative_error,
        num_samples=times.num_samples,
        stopped_by=latency.stopped_by,
        throughput=throughput[0],
        throughput_batch_size=throughput[1],
        peak_memory_mb=peak_mb,
        model_mb=model.num_bytes() / memory.MB,
        build_seconds=build_seconds,
        first_call_ms=first_call_ms,
        seconds=time.perf_counter() - start,
        flags=_flags(device, cost, latency),
        software=_software(cost.runtime),
    )


def _load(spec: ArchSpec, device: Device, cost: CostSettings, pixels: Tensor) -> Model:
    """The network in the runtime that is asked for."""
    model = torch_runtime.build(spec, torch.device(device.torch))
    if cost.runtime == "torch":
        return model
    if device.is_cuda:
        raise DeviceError(f"runtime {cost.runtime} measures on the CPU, not on {device.name}")
    from workers.runtimes import onnx_runtime

    return onnx_runtime.load(model, inputs.batch(pixels, 2), cost.threads)


def _conditions(device: Device, cost: CostSettings) -> dict:
    return {
        "protocol": PROTOCOL,
        "device_id": device.id,
        "device_name": device.name,
        "threads": cost.threads,
        "runtime": cost.runtime,
        "precision": "fp32" if cost.precision == "auto" else cost.precision,
        "batch_size": cost.batch_size,
    }


def _software(runtime: Runtime) -> dict[str, str]:
    found = {"torch": torch.__version__, "timm": timm.__version__, "python": platform.python_version()}
    if runtime != "torch":
        found[runtime] = metadata.version(runtime)
    return {**found, "system": platform.platform()}


def _flags(device: Device, cost: CostSettings, latency: timing.Latency) -> tuple[str, ...]:
    """`contended` where other work than ours disturbed it; a GPU's is not noticed."""
    is_contended = not device.is_cuda and latency.load.is_contended(cost.threads)
    return ("contended",) if is_contended else ()


def _undisturbed(
    device: Device, cost: CostSettings, time_it: Callable[[], Timings], waiting: lock.Waiting
) -> Timings:
    """Under the device's lock; the least disturbed of up to 1 + MAX_REPEATS times. The first call was the first."""
    found: list[Timings] = []
    while len(found) <= MAX_REPEATS:
        with lock.exclusive(device.lock, waiting):
            found.append(time_it())
        if not _flags(device, cost, found[-1][1]):
            break
    _, latency, throughput = min(found, key=lambda each: (each[1].load.others_share, -each[1].load.own_share))
    return found[0][0], latency, throughput


def _timings(
    model: Model,
    pixels: Tensor,
    cost: CostSettings,
    beat: Callable[[], object],
    latency_limits: Sequence[float],
) -> Timings:
    call = model.call(inputs.batch(pixels, cost.batch_size))
    first_start = time.perf_counter_ns()
    output = call()
    first_call_ms = (time.perf_counter_ns() - first_start) / 1e6
    torch_runtime.check_output(output, cost.batch_size)
    beat()
    timing.warm_up(call, cost.max_seconds * timing.WARM_UP_SHARE, beat)
    latency = timing.measure_latency(call, cost.max_seconds, cost.relative_error, beat, latency_limits)

    def call_of(size: int) -> timing.Work:
        return model.call(inputs.batch(pixels, size))

    throughput = timing.best_throughput(
        call_of,
        cost.batch_size,
        latency.summary.median,
        MAX_BATCH_SIZE[model.device.type],
        cost.max_seconds * THROUGHPUT_SHARE,
        beat,
    )
    return first_call_ms, latency, throughput


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
