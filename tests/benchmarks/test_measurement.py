"""What a measurement takes, and how well it repeats, in one process and in fresh ones.

pytest -s -m benchmark tests/benchmarks/test_measurement.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import asdict

import pytest
import torch
from torch.utils.benchmark import Timer

from spaces.spec import ArchSpec
from workers.measure import inputs, protocol
from workers.runtimes import torch_runtime
from workers.settings import CostSettings

pytestmark = pytest.mark.benchmark

NUM_REPEATS = 8
NUM_PROCESSES = 4
FIGURES = ("latency_ms", "throughput", "peak_memory_mb", "seconds", "num_samples")

SPECS = {
    "digits_vit": ArchSpec(
        "vit_tiny_patch16_224",
        {
            "img_size": 8,
            "patch_size": 2,
            "embed_dim": 32,
            "depth": 2,
            "num_heads": 2,
            "in_chans": 1,
            "num_classes": 10,
        },
        8,
    ),
    "small_vit": ArchSpec(
        "vit_tiny_patch16_224",
        {
            "img_size": 64,
            "patch_size": 8,
            "embed_dim": 128,
            "depth": 6,
            "num_heads": 4,
            "in_chans": 3,
            "num_classes": 10,
        },
        64,
    ),
}

ONE = """
import json, sys
from dataclasses import asdict
from spaces.spec import ArchSpec
from workers.measure import protocol
from workers.settings import CostSettings
spec = ArchSpec.from_dict(json.loads(sys.argv[1]))
print(json.dumps(asdict(protocol.measure(spec, CostSettings(device="cpu")))))
"""


def summary(found: list[dict]) -> dict:
    """Median and coefficient of variation of every figure; how many are flagged."""
    shown: dict = {"flagged": sum(bool(one["flags"]) for one in found)}
    for name in FIGURES:
        values = [float(one[name]) for one in found]
        middle = statistics.median(values)
        shown[name] = {"median": round(middle, 4), "cv": round(statistics.stdev(values) / middle, 4)}
    return shown


def blocked_autorange_ms(spec: ArchSpec) -> float:
    """The same call timed by torch's own tool, so that a machine whose speed changes is told from a bad protocol."""
    call = torch_runtime.build(spec, torch.device("cpu")).call(inputs.batch(inputs.prepare(spec, None), 1))
    with torch.inference_mode():
        return Timer("call()", globals={"call": call}).blocked_autorange(min_run_time=0.5).median * 1e3


@pytest.mark.parametrize("name", SPECS)
def test_repeats_in_one_process(name):
    found, reference = [], []
    for _ in range(NUM_REPEATS):
        found.append(asdict(protocol.measure(SPECS[name], CostSettings(device="cpu"))))
        reference.append(blocked_autorange_ms(SPECS[name]))
    scatter = statistics.stdev(reference) / statistics.median(reference)
    beside = {"median": round(statistics.median(reference), 4), "cv": round(scatter, 4)}
    print(json.dumps({name: summary(found), "blocked_autorange_ms": beside, "processes": 1}))


@pytest.mark.parametrize("name", SPECS)
def test_repeats_in_fresh_processes(name):
    command = [sys.executable, "-c", ONE, json.dumps(SPECS[name].to_dict())]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(NUM_PROCESSES)]
    found = [json.loads(run.stdout) for run in runs]
    print(json.dumps({name: summary(found), "processes": NUM_PROCESSES}))
