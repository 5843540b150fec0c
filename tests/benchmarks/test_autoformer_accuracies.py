"""How parameters and FLOPs rank AutoFormer networks that others trained (ViT-Bench-101, from Auto-Prox; AAAI 2024).

pytest -s -m benchmark tests/benchmarks/test_autoformer_accuracies.py

The table stands beside the repository (`../shared/bench`) and is not part of it.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from spaces.analysis import Analysis, analyse
from spaces.autoformer import AutoFormer
from spaces.spec import Task

pytestmark = pytest.mark.benchmark
TABLE = Path(__file__).parents[3] / "shared" / "bench" / "vitbench101_autoformer_cifar100.jsonl"
TASK = Task(image_size=224, channels=3, num_classes=100)


@pytest.fixture(scope="module")
def networks() -> list[dict[str, Any]]:
    if not TABLE.exists():
        pytest.skip(f"{TABLE} is not there")
    rows = [json.loads(line) for line in TABLE.read_text().splitlines()]
    return [row for row in rows if row["part"] == "main"]


def known(arch: dict[str, Any]) -> Analysis:
    values = {"patch_size": 16, "width": arch["hidden_dim"], "depth": arch["depth"]}
    for block, (heads, ratio) in enumerate(zip(arch["num_heads"], arch["mlp_ratio"], strict=True), start=1):
        values |= {f"heads_{block}": heads, f"mlp_ratio_{block}": ratio}
    return analyse(AutoFormer().spec(TASK, values))


def kendall_tau(one: list[float], other: list[float]) -> float:
    """Kendall's τ-b."""
    concordant, ties = 0, [0, 0]
    pairs = list(combinations(zip(one, other, strict=True), 2))
    for (a, x), (b, y) in pairs:
        concordant += ((a > b) - (a < b)) * ((x > y) - (x < y))
        ties[0] += a == b
        ties[1] += x == y
    return concordant / ((len(pairs) - ties[0]) * (len(pairs) - ties[1])) ** 0.5


@pytest.mark.parametrize(("accuracy", "expected"), [("cifar100_kd", 0.55), ("cifar100_base", -0.32)])
def test_size_ranks_distilled_networks_and_misleads_about_the_others(
    networks: list[dict[str, Any]], accuracy: str, expected: float
) -> None:
    trained = [(known(row["arch"]), row[accuracy]) for row in networks if row[accuracy] is not None]
    for quantity in ("params", "flops"):
        tau = kendall_tau([getattr(own, quantity) for own, _ in trained], [score for _, score in trained])
        print(f"{accuracy}: Kendall τ of {quantity} with accuracy {tau:+.3f} over {len(trained)} networks")
        if quantity == "params":
            assert tau == pytest.approx(expected, abs=0.05)
