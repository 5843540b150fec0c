from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "worker_memory.py"


@pytest.mark.parametrize("before, after", [(3, 12), pytest.param(5, 50, marks=pytest.mark.soak)])
def test_a_worker_that_has_measured_and_trained_many_candidates_is_within_5_percent_of_its_early_size(
    tmp_path: Path, before: int, after: int
) -> None:
    command = [sys.executable, str(SCRIPT), str(after), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    sizes = [float(line) for line in ended.stdout.split()]
    assert len(sizes) == after
    print(f"{sizes[before - 1]:.0f} MB after {before} candidates, {sizes[-1]:.0f} MB after {after}")
    assert sizes[-1] < 1.05 * sizes[before - 1]
