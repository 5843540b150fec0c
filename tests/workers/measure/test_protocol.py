from __future__ import annotations

import math
import statistics
import threading
import time
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from spaces.spec import ArchSpec
from workers import device, lock
from workers.errors import CandidateError, DeviceError
from workers.measure import protocol, samples, timing
from workers.measure.contention import Load
from workers.measure.statistics import summarise
from workers.measure.timing import Latency
from workers.runtimes import torch_runtime
from workers.settings import CostSettings


def vit(depth: int = 2, width: int = 32) -> ArchSpec:
    args = {
        "img_size": 8,
        "patch_size": 2,
        "embed_dim": width,
        "depth": depth,
        "num_heads": 2,
        "in_chans": 1,
        "num_classes": 10,
    }
    return ArchSpec("vit_tiny_patch16_224", args, 8)


QUICK = CostSettings(device="cpu", max_seconds=0.2)


@pytest.fixture(scope="module")
def measured():
    return protocol.measure(vit(), QUICK, np.full((4, 8, 8, 1), 9, np.uint8))


def test_a_measurement_names_its_conditions(measured):
    here = device.resolve("cpu", 1)
    assert (measured.device_id, measured.device_name, measured.threads) == (here.id, here.name, 1)
    assert (measured.protocol, measured.runtime, measured.precision) == ("host-2", "torch", "fp32")
    assert measured.batch_size == 1
    assert measured.stopped_by in ("relative_error", "max_seconds")


def test_a_measurement_keeps_the_versions_that_it_was_taken_with(measured):
    assert measured.software["torch"] == torch.__version__
    assert {"timm", "python", "system"} <= measured.software.keys()


def test_the_timings_behind_the_median_are_kept(measured):
    kept = samples.unpack(samples.from_text(measured.samples))
    assert len(kept) == min(measured.num_samples, samples.MAX_SAMPLES)
    if measured.num_samples <= samples.MAX_SAMPLES:
        assert statistics.median(kept) == pytest.approx(measured.latency_ms)


def test_a_cold_measurement_says_so_and_is_slower_than_a_hot_one():
    """1.6 MB of weights, which any last-level cache holds. Both are taken in turn, as a machine may slow down."""
    settings = CostSettings(device="cpu", max_seconds=0.2)
    pairs = [
        (
            protocol.measure(vit(4, 96), settings),
            protocol.measure(vit(4, 96), replace(settings, cache="cold")),
        )
        for _ in range(2)
    ]
    assert {(hot.cache, cold.cache) for hot, cold in pairs} == {("hot", "cold")}
    assert all(cold.latency_ms > hot.latency_ms for hot, cold in pairs)


def test_its_figures_are_finite_and_in_order(measured):
    numbers = [value for value in asdict(measured).values() if isinstance(value, float)]
    assert all(math.isfinite(value) and value >= 0 for value in numbers)
    assert measured.latency_ms_low <= measured.latency_ms <= measured.latency_ms_high
    assert measured.latency_ms <= measured.latency_ms_p95
    assert measured.throughput * measured.latency_ms >= 0.99e3
    assert measured.num_samples >= 3
    assert measured.first_call_ms > 0
    assert measured.peak_memory_mb >= measured.model_mb > 0


def test_model_mb_is_that_of_the_weights(measured):
    from spaces import models

    assert measured.model_mb == pytest.approx(models.count(vit()) * 4 / 1e6)


def test_a_deeper_network_costs_more():
    small, large = (protocol.measure(vit(depth, width), QUICK) for depth, width in ((1, 16), (8, 128)))
    assert large.latency_ms_low > small.latency_ms_high
    assert large.peak_memory_mb > small.peak_memory_mb
    assert large.throughput < small.throughput


def test_the_device_is_ours_alone_while_the_clock_runs(monkeypatch):
    """A training of this process never steps between the first call and the last."""
    inside, steps = [], []
    stop, timings = threading.Event(), protocol._timings

    def watched(*arguments):
        start = time.monotonic()
        found = timings(*arguments)
        inside.append((start, time.monotonic()))
        return found

    def training() -> None:
        with lock.sharing([device.cpu_lock()]) as share:
            while not stop.is_set():
                share.pause_if_wanted()
                began = time.monotonic()
                time.sleep(0.002)
                steps.append((began, time.monotonic()))

    monkeypatch.setattr(protocol, "_timings", watched)
    thread = threading.Thread(target=training)
    thread.start()
    try:
        protocol.measure(vit(), QUICK)
    finally:
        stop.set()
        thread.join()
    (start, end) = inside[0]
    assert len(steps) > 2
    assert not any(began < end and start < ended for began, ended in steps)


def test_torchs_threads_and_random_state_are_as_they_were():
    threads = torch.get_num_threads()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    protocol.measure(vit(), CostSettings(device="cpu", max_seconds=0.02, threads=threads + 1))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.rand(3), expected)


def test_the_batch_size_asked_for_is_the_one_timed(monkeypatch):
    seen = []
    call = torch_runtime.TorchModel.call
    monkeypatch.setattr(
        torch_runtime.TorchModel, "call", lambda self, images: seen.append(len(images)) or call(self, images)
    )
    found = protocol.measure(vit(), CostSettings(device="cpu", max_seconds=0.02, batch_size=6))
    assert seen[0] == found.batch_size == 6


def test_a_gpu_that_is_not_there_is_refused_before_anything_is_built():
    with pytest.raises(DeviceError, match="cuda:7"):
        protocol.measure(ArchSpec("no_such_model"), CostSettings(device="cuda:7"))


def test_an_output_that_is_no_row_of_scores_an_image_is_the_candidates_fault():
    spec = ArchSpec("vit_tiny_patch16_224", {**vit().args, "num_classes": 0, "global_pool": ""}, 8)
    with pytest.raises(CandidateError, match=r"returned \[1, 17, 32\] for 1 images"):
        protocol.measure(spec, QUICK)


def disturbed(monkeypatch, *loads):
    """Has the latency be timed under these loads, one after another; answers how often it was."""
    left, times = list(loads), []

    def timed(*_):
        times.append(float(len(times) + 1))
        return Latency(summarise([times[-1]]), "max_seconds", left.pop(0))

    monkeypatch.setattr(timing, "measure_latency", timed)
    return times


QUIET, KEPT_OFF, BUSY = Load(1.0, 0.99, 0.01), Load(1.0, 0.8, 0.1), Load(1.0, 0.99, 0.9)


def test_a_measurement_that_other_work_disturbs_is_repeated_until_it_is_not(monkeypatch):
    times = disturbed(monkeypatch, BUSY, QUIET)
    found = protocol.measure(vit(), QUICK)
    assert (times, found.latency_ms, found.flags) == ([1.0, 2.0], 2.0, ())


def test_after_two_repeats_the_least_disturbed_counts_and_is_flagged(monkeypatch):
    times = disturbed(monkeypatch, BUSY, KEPT_OFF, BUSY, QUIET)
    found = protocol.measure(vit(), QUICK)
    assert (times, found.latency_ms, found.flags) == ([1.0, 2.0, 3.0], 2.0, ("contended",))


def test_a_quiet_measurement_is_taken_once(monkeypatch):
    times = disturbed(monkeypatch, QUIET, BUSY)
    assert (protocol.measure(vit(), QUICK).flags, times) == ((), [1.0])
