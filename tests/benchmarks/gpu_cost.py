"""Measured cost on one device: is it repeatable, does it agree with other clocks, does it notice disturbance.

python tests/benchmarks/gpu_cost.py [--device cuda|cpu] [--seconds N] [--processes N]

Prints one JSON document. It needs `spaces`, `workers`, torch and timm, and ends within N seconds or a little more (270
unless told otherwise); what there was no time for is listed under `left_out`. `checks` says of each claim whether it
held, null where it could not be tried.

- repeats: ViT-Ti in fresh processes, by our protocol; beside it the same call by events written out here and by
  `triton.testing.do_bench`, each in its own cache mode (hot, and emptied before each call).
- networks: ViT-Ti, S and B: latency, time on the device, energy.
- graph: ViT-Ti recorded as a CUDA graph beside eager torch, at batch 1.
- disturbed: ViT-Ti beside a process that works on the device, and beside another stream of the same process.

On a CPU the networks are cut to two narrow blocks, `torch.utils.benchmark` is the other clock, and there are no events,
graphs and streams: that path shows that the program runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the packages are not installed

import timm
import torch
from torch.utils import benchmark

from spaces import models
from spaces.spec import ArchSpec
from workers.job import Measurement
from workers.measure import PROTOCOL, conditions, protocol
from workers.settings import CostSettings

MODELS = {
    "ViT-Ti": "vit_tiny_patch16_224",
    "ViT-S": "vit_small_patch16_224",
    "ViT-B": "vit_base_patch16_224",
}
CUT = {
    "ViT-Ti": {"depth": 2, "embed_dim": 48, "num_heads": 3},
    "ViT-S": {"depth": 2, "embed_dim": 96, "num_heads": 3},
    "ViT-B": {"depth": 2, "embed_dim": 192, "num_heads": 3},
}
"""On a CPU."""
SIDE = 224
MOST_SHARE = 0.6
"""Of the time, for the repeats in fresh processes; the rest needs the others."""


def main(device: str, seconds: float, processes: int) -> dict[str, Any]:
    """Everything that there is time for."""
    ends = time.monotonic() + seconds
    left_out: list[str] = []
    found: dict[str, Any] = {
        "repeats": repeats(device, processes, ends - (1 - MOST_SHARE) * seconds, left_out)
    }
    parts: dict[str, Callable[[str], Any]] = {"networks": networks, "disturbed": disturbed, "graph": graph}
    for name, part in parts.items():
        if time.monotonic() < ends:
            found[name] = part(device)
        else:
            found[name] = None
            left_out.append(name)
    name = torch.cuda.get_device_name(torch.device(device)) if is_gpu(device) else "cpu"
    return {
        "device": name,
        "torch": torch.__version__,
        "timm": timm.__version__,
        "protocol": PROTOCOL,
        "cut_networks": not is_gpu(device),
        "conditions": conditions.read(protocol.resolve(device)),
        **found,
        "checks": checks(found, is_gpu(device)),
        "left_out": left_out,
    }


def checks(found: dict[str, Any], on_gpu: bool) -> dict[str, bool | None]:
    """What was to be shown, and whether it was."""
    runs, clock = found["repeats"], "device_ms" if on_gpu else "latency_ms"
    energies = [one["energy_mj"] for one in (found["networks"] or {}).values()]
    disturbance = found["disturbed"] or {}
    graphs = found["graph"]
    return {
        "cv_at_most_1_percent": _at_most(runs["cv"].get(clock), 0.01),
        "agrees_with_events_by_hand_within_3_percent": _at_most(runs["apart"].get("by_hand"), 0.03),
        "agrees_with_do_bench_within_3_percent": _at_most(runs["apart"].get("do_bench"), 0.03),
        "agrees_with_blocked_autorange_within_3_percent": _at_most(runs["apart"].get("autorange"), 0.03),
        "energy_rises_with_size": None if None in energies or not energies else sorted(energies) == energies,
        "a_graph_is_no_slower_than_eager": None if not graphs else graphs["eager_ms"] >= graphs["graph_ms"],
        "another_process_is_flagged": _flagged(disturbance.get("process")),
        "another_stream_is_flagged": _flagged(disturbance.get("stream")),
    }


def _at_most(value: float | None, most: float) -> bool | None:
    return None if value is None else value <= most


def _flagged(one: dict[str, Any] | None) -> bool | None:
    return None if one is None else "contended" in one["flags"]


# -- in fresh processes ---------------------------------------------------------------------------------------


def repeats(device: str, processes: int, ends: float, left_out: list[str]) -> dict[str, Any]:
    """runs: of each process. cv: standard deviation of a figure over processes ÷ its mean. apart: by how much the
    median of ours and of another clock differ, as a share of the other's; null where there is no such clock."""
    runs: list[dict[str, Any]] = []
    for number in range(processes):
        if runs and time.monotonic() > ends:
            left_out.append(f"{processes - number} of {processes} repeats")
            break
        command = [sys.executable, __file__, "--device", device, "--child"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"a repeat failed: {ended.stderr[-2000:]}")
        runs.append(json.loads(ended.stdout))
    return {
        "runs": runs,
        "cv": {name: _cv([run[name] for run in runs]) for name in ("device_ms", "latency_ms")},
        "apart": {
            "by_hand": _apart(runs, "device_ms", "by_hand_ms"),
            "do_bench": _apart(runs, "cold_device_ms", "do_bench_ms"),
            "autorange": _apart(runs, "latency_ms", "autorange_ms"),
        },
    }


def child(device: str) -> dict[str, Any]:
    """ViT-Ti by our protocol in both cache modes, and by the other clocks that there are."""
    spec = spec_of("ViT-Ti", device)
    hot = measured(spec, device)
    by_hand, do_bench, autorange = other_clocks(spec, device)
    cold = measured(spec, device, cache="cold") if is_gpu(device) else None
    return {
        "latency_ms": hot.latency_ms,
        "device_ms": hot.device_ms,
        "cold_device_ms": None if cold is None else cold.device_ms,
        "by_hand_ms": by_hand,
        "do_bench_ms": do_bench,
        "autorange_ms": autorange,
        "flags": list(hot.flags),
    }


def other_clocks(spec: ArchSpec, device: str) -> tuple[float | None, float | None, float | None]:
    """Median milliseconds of one call, its input's copy included: by events here, by triton, and by torch's timer on a
    CPU. Built anew, so that nothing but the architecture is shared with what they are compared with."""
    place = torch.device(device)
    network = models.build(spec).eval().to(place)
    host = torch.randn(1, 3, SIDE, SIDE)
    host = host.pin_memory() if is_gpu(device) else host
    images = torch.empty_like(host, device=place)

    def call() -> None:
        images.copy_(host, non_blocking=True)
        network(images)

    with torch.inference_mode():
        for _ in range(20):
            call()
        if not is_gpu(device):
            timer = benchmark.Timer("call()", globals={"call": call}, num_threads=1)
            return None, None, timer.blocked_autorange(min_run_time=0.5).median * 1e3
        return events(call), triton(call), None


def events(call: Callable[[], None], count: int = 200) -> float:
    torch.cuda.synchronize()
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
    for start, stop in pairs:
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(stop) for start, stop in pairs)


def triton(call: Callable[[], None]) -> float | None:
    """It empties the L2 cache before each call."""
    try:
        from triton import testing
    except ImportError:
        return None
    return float(testing.do_bench(call, warmup=100, rep=500, return_mode="median"))


# -- in this process ------------------------------------------------------------------------------------------


def networks(device: str) -> dict[str, Any]:
    return {name: figures(measured(spec_of(name, device), device, energy=True)) for name in MODELS}


def graph(device: str) -> dict[str, Any] | None:
    """Null on a CPU."""
    if not is_gpu(device):
        return None
    spec = spec_of("ViT-Ti", device)
    eager, recorded = measured(spec, device), measured(spec, device, runtime="cuda-graph")
    return {
        "eager_ms": eager.latency_ms,
        "graph_ms": recorded.latency_ms,
        "eager_device_ms": eager.device_ms,
        "graph_device_ms": recorded.device_ms,
        "times_faster": eager.latency_ms / recorded.latency_ms,
    }


def disturbed(device: str) -> dict[str, Any]:
    """stream: null on a CPU."""
    spec = spec_of("ViT-Ti", device)
    found: dict[str, Any] = {"alone": figures(measured(spec, device))}
    with rogue_process(device):
        found["process"] = figures(measured(spec, device))
    found["stream"] = None
    if is_gpu(device):
        with rogue_stream(device):
            found["stream"] = figures(measured(spec, device))
    return found


@contextmanager
def rogue_process(device: str) -> Iterator[None]:
    """Works on the device until the block ends; it has begun when the block does."""
    command = [sys.executable, __file__, "--device", device, "--rogue"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def rogue(device: str, stop: threading.Event, begun: Callable[[], None] = lambda: None) -> None:
    """Matrix products without a pause; on a GPU never more than a few are queued."""
    side = 2048 if is_gpu(device) else 512
    one = torch.randn(side, side, device=device)
    begun()
    while not stop.is_set():
        for _ in range(4):
            one @ one  # pyright: ignore[reportUnusedExpression]
        if is_gpu(device):
            torch.cuda.current_stream(torch.device(device)).synchronize()


@contextmanager
def rogue_stream(device: str) -> Iterator[None]:
    """The same on another stream of this process."""
    stop, begun = threading.Event(), threading.Event()

    def work() -> None:
        with torch.cuda.stream(torch.cuda.Stream(torch.device(device))):
            rogue(device, stop, begun.set)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measured(spec: ArchSpec, device: str, *, energy: bool = False, **changes: Any) -> Measurement:
    cost = CostSettings(
        device=device,
        max_seconds=1.5 if is_gpu(device) else 0.3,
        relative_error=0.002,
        energy_seconds=2.0 if energy else 0.0,
    )
    return protocol.measure(spec, replace(cost, **changes))


def figures(one: Measurement) -> dict[str, Any]:
    names = ("latency_ms", "device_ms", "latency_ms_spread", "throughput", "energy_mj", "energy_source")
    return {name: getattr(one, name) for name in names} | {"flags": list(one.flags)}


def spec_of(name: str, device: str) -> ArchSpec:
    args = {"img_size": SIDE, "in_chans": 3, "num_classes": 10} | ({} if is_gpu(device) else CUT[name])
    return ArchSpec(MODELS[name], args, SIDE)


def is_gpu(device: str) -> bool:
    return torch.device(device).type == "cuda"


def _cv(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.stdev(known) / statistics.fmean(known) if len(known) > 1 else None


def _apart(runs: list[dict[str, Any]], ours: str, other: str) -> float | None:
    pairs = [(run[ours], run[other]) for run in runs if run[ours] is not None and run[other] is not None]
    if not pairs:
        return None
    mine, others = (statistics.median(column) for column in zip(*pairs, strict=True))
    return abs(mine / others - 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=270.0)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rogue", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.rogue:
        rogue(asked.device, threading.Event(), lambda: print("begun", flush=True))
    elif asked.child:
        print(json.dumps(child(asked.device)))
    else:
        print(json.dumps(main(asked.device, asked.seconds, asked.processes), indent=1))
