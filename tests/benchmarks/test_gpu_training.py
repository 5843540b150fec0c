from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "gpu_training.py"
RUN = """
import runpy, sys
script = sys.argv[1]
sys.argv = [script, "--device", "cpu", "--seconds", "10"]
runpy.run_path(script, run_name="__main__")
forbidden = {"search", "dashboards", "ray", "optuna", "sqlalchemy", "alembic", "pydantic", "plotly"}
print(*sorted(forbidden & set(sys.modules)), file=sys.stderr)
"""


def test_the_benchmark_for_gpus_runs_on_a_cpu_with_workers_and_spaces_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, str(SCRIPT)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.strip() == ""
    found = json.loads(ended.stdout)
    assert (found["device"], found["cut_networks"]) == ("cpu", True)
    assert len(found["results"]) + len(found["left_out"]) == 2 * 2 * 3 * 2
    first = found["results"][0]
    assert (first["model"], first["image_size"], first["precision"]) == ("ViT-Ti", 32, "fp32")
    assert first["bare_images_per_second"] > 0
    assert first["our_images_per_second"] > 0
    assert first["peak_memory_mb"] is None
    for one in found["results"]:
        assert (one["ratio"] is None) is one["compiled"]
        assert 0 < one["loss"] < 10
    assert [one["image_size"] for one in found["probes"]] == [32, 224]
    for one in found["probes"]:
        assert one["chosen"] in one["step_ms"], one
    same = {"same_bits": True, "largest": 0.0}
    assert found["resume"] == {"run_again": same, "stopped_and_resumed": same}
