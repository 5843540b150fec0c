"""What Ray Tune runs in a worker: one Job, reported epoch by epoch. Imports ray.tune and workers only.

torch and timm are imported by the first job, not while a worker starts: Tune hands the job that a starting worker is
for to any worker that comes free meanwhile, and ends the one that is starting. Beside short jobs none would come up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ray import tune

from workers.job import Decision, EpochReport, Job


def run_job(config: dict[str, Any]) -> None:
    """config: `job` and `stop_file`. Reports `started` once, `report` each epoch, and `outcome` at the end, as JSON.

    The driver answers a report by making the stop file, or by leaving it out: Tune itself has no answer that a
    worker could act on before it is killed.
    """
    job = Job.from_json(config["job"])
    stop_file = Path(config["stop_file"])

    def emit(report: EpochReport) -> Decision:
        tune.report({"report": report.to_json()})
        return Decision.STOP if stop_file.exists() else Decision.CONTINUE

    tune.report({"started": True})
    from workers.perform import perform

    tune.report({"outcome": perform(job, emit).to_json()})
