"""The measurement protocol `host-2`: what one architecture costs on one device.

Torch's threads are set as the settings say and Python's garbage collector is off meanwhile.

1. The network is built with random non-zero weights, converted or compiled for the runtime and precision, and its
   scores are compared with eager torch's in fp32; the clock runs (`build_seconds`), the device is still shared.
2. Under the device's exclusive lock: the first call; warm-up until the rate is stable; repeats of one call (input
   copy included, synchronised, host clock) until the median is known well enough; throughput at a few larger
   batches. With `cost.cache` hot the input is the same each time; cold, the last-level cache is emptied before
   each call, outside the clock.
3. Where work that is not ours disturbed step 2, it is done again, at most twice; the least disturbed one counts, and
   is flagged where it was disturbed too. The state of the device is read as it ends.
4. Still alone: on a GPU the same call by the device's clock; where the device counts energy, what the call takes, for
   `cost.energy_seconds`.
5. Peak memory, with the device shared again: what other processes do does not change it.

The name changes whenever figures of before and after could differ for a reason other than the network.
"""

from __future__ import annotations

import importlib
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import timm
import torch
from torch import Tensor

from spaces.spec import ArchSpec
from workers import lock
from workers.device import Device, resolve
from workers.job import Measurement
from workers.measure import PROTOCOL, cache, conditions, energy, inputs, malloc, memory, samples, timing
from workers.measure.contention import GpuLoad, GpuWatch
from workers.measure.device_time import device_time_ms
from workers.runtimes import loading, torch_runtime
from workers.runtimes.torch_runtime import Model, OnStream
from workers.settings import CostSettings, Runtime

Timings = tuple[float, timing.Latency, tuple[float, int]]
"""First call in ms, latency, and (images a second, batch size)."""

THROUGHPUT_SHARE = 0.3
DEVICE_TIME_SHARE = 0.2
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
        model = loading.load(spec, device, cost, pixels)
        model.synchronize()
        build_seconds = time.perf_counter() - build_start
        beat()
        first_call_ms, timed, throughput = _undisturbed(
            device, partial(_timings, model, pixels, cost, beat, latency_limits), waiting
        )
        latency = timed.latency
        beat()
        with lock.exclusive(device.lock, waiting):
            device_ms = _device_ms(model, pixels, cost)
            energy_used = _energy(device, model, pixels, cost, beat)
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
        samples=samples.to_text(samples.pack(latency.samples)),
        stopped_by=latency.stopped_by,
        throughput=throughput[0],
        throughput_batch_size=throughput[1],
        peak_memory_mb=peak_mb,
        model_mb=model.num_bytes() / memory.MB,
        build_seconds=build_seconds,
        first_call_ms=first_call_ms,
        seconds=time.perf_counter() - start,
        flags=("contended",) if timed.is_contended(cost.threads) else (),
        software=_software(cost.runtime),
        device_ms=device_ms,
        energy_mj=energy_used.energy_mj,
        energy_source=energy_used.source,
        conditions={**timed.conditions, "idle_power_w": energy_used.idle_w},
    )


def _conditions(device: Device, cost: CostSettings) -> dict:
    return {
        "protocol": PROTOCOL,
        "device_id": device.id,
        "device_name": device.name,
        "threads": cost.threads,
        "runtime": cost.runtime,
        "precision": cost.used_precision,
        "batch_size": cost.batch_size,
        "cache": cost.cache,
    }


def _software(runtime: Runtime) -> dict[str, str]:
    found = {"torch": torch.__version__, "timm": timm.__version__, "python": platform.python_version()}
    if runtime not in ("torch", "torch-compile", "cuda-graph"):
        found[runtime] = str(importlib.import_module(runtime).__version__)
    return {**found, "system": platform.platform()}


@dataclass(frozen=True)
class Timed:
    """A latency, what disturbed it, and the state that the device was in. gpu_load: None on a CPU."""

    latency: timing.Latency
    gpu_load: GpuLoad | None
    conditions: Mapping[str, Any]

    def is_contended(self, threads: int) -> bool:
        """Whether other work than ours disturbed it."""
        if self.gpu_load is not None:
            return self.gpu_load.is_contended()
        return self.latency.load.is_contended(threads)

    @property
    def disturbance(self) -> tuple[float, float]:
        """Less is better."""
        if self.gpu_load is not None:
            return self.gpu_load.others_share or 0.0, self.gpu_load.spread
        return self.latency.load.others_share, -self.latency.load.own_share


def _undisturbed(
    device: Device, time_it: Callable[[], Timings], waiting: lock.Waiting
) -> tuple[float, Timed, tuple[float, int]]:
    """Under the device's lock; the least disturbed of up to 1 + MAX_REPEATS times. The first call was the first."""
    found: list[tuple[float, Timed, tuple[float, int]]] = []
    while len(found) <= MAX_REPEATS:
        with lock.exclusive(device.lock, waiting):
            watch = GpuWatch(device) if device.is_cuda else None
            first_call_ms, latency, throughput = time_it()
            gpu_load = None if watch is None else watch.load(latency.summary.spread)
            timed = Timed(latency, gpu_load, conditions.read(device))
        found.append((first_call_ms, timed, throughput))
        if not timed.is_contended(device.threads):
            break
    _, timed, throughput = min(found, key=lambda each: each[1].disturbance)
    return found[0][0], timed, throughput


def _device_ms(model: Model, pixels: Tensor, cost: CostSettings) -> float | None:
    """Of the latency's call, by the device's clock; None on a CPU and for what does not work on torch's stream."""
    if not isinstance(model, OnStream):
        return None
    images, before = _fed(model, pixels, cost.batch_size, cost)
    launch = model.launch(images)
    launch()
    return device_time_ms(launch, model.device, cost.max_seconds * DEVICE_TIME_SHARE, before)


def _energy(
    device: Device, model: Model, pixels: Tensor, cost: CostSettings, beat: Callable[[], object]
) -> energy.Energy:
    if not cost.energy_seconds:
        return energy.Energy(None, "left out: cost.energy_seconds is 0")
    call = model.call(inputs.batch(pixels, cost.batch_size))
    return energy.measure(device, call, cost.batch_size, cost.energy_seconds, beat)


def _fed(model: Model, pixels: Tensor, size: int, cost: CostSettings) -> tuple[Tensor, timing.Work]:
    """Images for calls of `size`, and what is done before each, outside the clock."""
    images = inputs.batch(pixels, size)
    if model.device.type == "cuda":
        images = images.pin_memory()
    if cost.cache == "hot":
        return images, timing.nothing
    return images, cache.emptying(model.device, images, pixels)


def _timings(
    model: Model,
    pixels: Tensor,
    cost: CostSettings,
    beat: Callable[[], object],
    latency_limits: Sequence[float],
) -> Timings:
    images, before = _fed(model, pixels, cost.batch_size, cost)
    call = model.call(images)
    first_start = time.perf_counter_ns()
    output = call()
    first_call_ms = (time.perf_counter_ns() - first_start) / 1e6
    torch_runtime.check_output(output, cost.batch_size)
    beat()
    timing.warm_up(call, cost.max_seconds * timing.WARM_UP_SHARE, beat, before)
    latency = timing.measure_latency(
        call, cost.max_seconds, cost.relative_error, beat, latency_limits, before
    )

    def call_of(size: int) -> tuple[timing.Work, timing.Work]:
        images, before = _fed(model, pixels, size, cost)
        return model.call(images), before

    throughput = timing.best_throughput(
        call_of,
        cost.batch_size,
        latency.summary.median,
        MAX_BATCH_SIZE[model.device.type] if model.takes_any_batch else cost.batch_size,
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
