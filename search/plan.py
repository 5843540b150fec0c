"""Plan: a checked config with everything that follows from it and from the data. Made once, then only read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from search import rungs
from search.config import DEFAULT_BASELINE, SearchConfig, job_settings
from search.objectives import Constraint, Quantity, parse_constraints, parse_objectives
from spaces import analysis
from spaces.baselines import default_baseline, median_params
from spaces.registry import Space, make_space
from spaces.spec import ArchSpec, Task
from workers.data.summary import DataSummary
from workers.measure import PROTOCOL
from workers.settings import JobSettings


@dataclass(frozen=True)
class Plan:
    """rungs: cumulative epochs. baselines: name -> spec; baseline_analysis: name -> what is known of it in closed form.
    measurement_key: the conditions, but for the device, under
    which a figure measured before is the same figure."""

    config: SearchConfig
    space: Space
    objectives: tuple[Quantity, ...]
    constraints: tuple[Constraint, ...]
    baselines: Mapping[str, ArchSpec]
    rungs: tuple[int, ...]
    settings: JobSettings
    data: DataSummary
    baseline_analysis: Mapping[str, Mapping[str, float]]

    @property
    def measurement_key(self) -> dict[str, Any]:
        cost = self.settings.cost
        return {
            "threads": cost.threads,
            "runtime": cost.runtime,
            "precision": "fp32" if cost.precision == "auto" else cost.precision,
            "batch_size": cost.batch_size,
            "protocol": PROTOCOL,
        }


def make_plan(config: SearchConfig, data: DataSummary) -> Plan:
    """Raises SpaceError when the space cannot be made for these images."""
    task = Task(data.image_size, data.channels, len(data.class_names))
    space = make_space(task, config.space.preset, config.space.families, config.space.ranges)
    baselines = _baselines(config, space, task)
    return Plan(
        config=config,
        space=space,
        objectives=tuple(parse_objectives(config.objectives)),
        constraints=tuple(parse_constraints(config.constraints)),
        baselines=baselines,
        rungs=rungs.resolve(config.search.rungs, config.training.epochs, config.search.sampler),
        settings=job_settings(config),
        data=data,
        baseline_analysis={
            name: asdict(analysis.analyse(spec)) if analysis.knows(spec) else {}
            for name, spec in baselines.items()
        },
    )


def _baselines(config: SearchConfig, space: Space, task: Task) -> dict[str, ArchSpec]:
    if config.baselines is None:
        return {DEFAULT_BASELINE: default_baseline(task, median_params(space))}
    head = {"in_chans": task.channels, "num_classes": task.num_classes}
    return {
        name: ArchSpec(baseline.model, dict(baseline.args) | head, task.image_size)
        for name, baseline in config.baselines.items()
    }
