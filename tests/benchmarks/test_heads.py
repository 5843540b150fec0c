"""How heads move the measured latency of networks whose parameters and FLOPs they leave alone.

pytest -s -m benchmark tests/benchmarks/test_heads.py
"""

from __future__ import annotations

import numpy as np
import pytest

from spaces.analysis import analyse
from spaces.registry import make_space
from spaces.spec import ArchSpec, Task
from workers.measure import protocol
from workers.settings import CostSettings

pytestmark = pytest.mark.benchmark
WIDTH = 192
HEADS = (1, 3, 6, 12, 48)


def network(heads: int) -> ArchSpec:
    task = Task(image_size=128, channels=3, num_classes=10)
    values = {
        "patch_size": 8,
        "depth": 6,
        "heads": heads,
        "head_width": WIDTH // heads,
        "mlp_ratio": 4.0,
        "pooling": "average",
    }
    ranges = {"vit": {key: [value] for key, value in values.items()}}
    space = make_space(task, families=["vit"], overrides=ranges)
    return space.spec({"family": "vit", **{f"vit.{key}": value for key, value in values.items()}})


def test_heads_move_latency_and_neither_parameters_nor_flops() -> None:
    images = np.random.default_rng(0).integers(0, 256, (8, 128, 128, 3), dtype=np.uint8)
    cost = CostSettings(device="cpu")
    specs = {heads: network(heads) for heads in HEADS}
    assert len({(analyse(spec).params, analyse(spec).flops) for spec in specs.values()}) == 1
    print()
    for heads, spec in specs.items():
        found = protocol.measure(spec, cost, images)
        bounds = f"{found.latency_ms_low:.2f} to {found.latency_ms_high:.2f}"
        print(f"{heads:>3} heads x {WIDTH // heads:>3} wide: {found.latency_ms:.2f} ms, {bounds}")
