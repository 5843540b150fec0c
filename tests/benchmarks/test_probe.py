"""What a probe chooses for a family, and how its choice trains beside fp32, contiguous, eager.

pytest -s -m benchmark tests/benchmarks/test_probe.py

The probe is the job of a search: one network of the family and two others, on images of Fashion-MNIST. Then the choice
and the reference take turns on three networks that the probe has not seen, in one process, and are judged by seconds
of the CPU. Where the reference was chosen, there is nothing to compare. Nothing is compiled, which takes minutes here.
"""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path

import pytest
import torch

from spaces.registry import make_space
from spaces.spec import Task
from workers.data.batches import resident
from workers.device import resolve
from workers.execution import Execution, ProbeTask
from workers.job import Decision, Job, Kind
from workers.perform import perform
from workers.probe_bench import Bench
from workers.settings import CostSettings, DataSettings, JobSettings, RecipeSettings

pytestmark = pytest.mark.benchmark
FASHION = Path("/usr/share/datasets/fashion-mnist")
DATA = DataSettings("idx", str(FASHION), train_limit=1020, val_limit=180)
ROUNDS = 12
SLOWEST = 0.95


def cpu_seconds(bench: Bench, way: Execution, subject: int) -> float:
    """Of one step."""
    started = time.process_time()
    bench.turn(way, subject, 0)
    return time.process_time() - started


@pytest.mark.parametrize("family", ["vit", "swin", "hybrid"])
def test_a_choice_is_not_slower_than_the_reference(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not FASHION.is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path / "runtime"))
    space, rng = make_space(Task(28, 1, 10), "tiny", [family]), random.Random(1)
    seen, unseen = ([space.spec(space.sample(rng)) for _ in range(3)] for _ in range(2))
    settings = JobSettings(DATA, RecipeSettings(compile="off", batch_size=32), CostSettings(device="cpu"))
    task = ProbeTask(27, 27 * 50, 1, tuple(seen[1:]))
    job = Job(1, 1, 1, Kind.PROBE, "probe", 1, seen[0], settings, str(tmp_path), probe=task)
    outcome = perform(job, lambda _: Decision.CONTINUE)
    found = outcome.probed
    assert found is not None, outcome.reason
    print(f"\n{family}: {found.execution.words}, {found.why}; {found.seconds:.1f} s")
    for trial in found.trials:
        steps = ", ".join(f"{each:.1f}" for each in trial.step_ms)
        print(f"  {trial.execution.words:<36} {f'{steps} ms a step' if steps else trial.out}")

    task = ProbeTask(1, 1, 1, tuple(unseen[1:]))
    fresh = Job(2, 1, 1, Kind.PROBE, "probe", 2, unseen[0], settings, str(tmp_path), probe=task)
    bench = Bench(fresh, resolve("cpu"), resident(DATA, torch.device("cpu")), lambda: None)
    ways = [found.reference, found.execution]
    if ways[0] == ways[1]:
        return
    assert [bench.why_out(way) for way in ways] == [None, None]
    for subject in range(bench.num_subjects):
        rounds = [[cpu_seconds(bench, way, subject) for way in ways] for _ in range(ROUNDS)]
        ratio = statistics.median(plain / chosen for plain, chosen in rounds)
        print(f"  a network that it had not seen: {ratio:.2f}x the reference")
        assert ratio > SLOWEST
