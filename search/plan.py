"""Plan: a checked config with everything that follows from it and from the data. Made once, then only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from search import rungs
from search.config import SearchConfig, job_settings
from search.named_runtimes import NamedRuntime, named
from search.objectives import Constraint, Quantity, parse_constraints, parse_objectives
from search.own_family import OwnFamily, by_own_names, guarded
from spaces import analysis, deit
from spaces.backbone import Backbone
from spaces.baselines import SCALED, default_baseline, median_params
from spaces.dims import Family
from spaces.registry import Space, make_space, preset_for
from spaces.spec import ArchSpec, Task
from workers.data.summary import DataSummary
from workers.measure import PROTOCOL
from workers.settings import JobSettings, Precision, Runtime


@dataclass(frozen=True)
class Teacher:
    """The network that candidates learn from. name: as the config gives it. made: how it comes to be, in words.
    epochs: of its training; 0 where it is not trained any more."""

    name: str
    made: str
    spec: ArchSpec
    epochs: int


@dataclass(frozen=True)
class Plan:
    """rungs: cumulative epochs. baselines: name -> spec; baseline_analysis: name -> what is known of it in closed form,
    nothing for a network without one. measurement_key: the conditions, but for the device, under which a figure
    measured before is the same figure. own: families of the user's, by name. backbone: knows what the networks
    cost that are searched as parts of others. teacher: `search.teaching` adds it."""

    config: SearchConfig
    space: Space
    objectives: tuple[Quantity, ...]
    constraints: tuple[Constraint, ...]
    baselines: Mapping[str, ArchSpec]
    rungs: tuple[int, ...]
    settings: JobSettings
    data: DataSummary
    baseline_analysis: Mapping[str, Mapping[str, float]]
    own: Mapping[str, OwnFamily] = field(default_factory=dict)
    backbone: Backbone = field(default_factory=Backbone)
    teacher: Teacher | None = None

    @property
    def measurement_key(self) -> dict[str, Any]:
        cost = self.settings.cost
        return {
            "threads": cost.threads,
            "runtime": cost.runtime,
            "precision": cost.used_precision,
            "batch_size": cost.batch_size,
            "protocol": PROTOCOL,
            "cache": cost.cache,
        }

    @property
    def named_runtimes(self) -> tuple[NamedRuntime, ...]:
        """Those that objectives and constraints name."""
        names = [asked.name for asked in (*self.objectives, *self.constraints)]
        return named(names, self.settings.cost.used_precision)

    @property
    def further_runtimes(self) -> tuple[tuple[Runtime, Precision], ...]:
        """Those of them that `cost` does not measure in, each once."""
        cost = self.settings.cost
        keys = dict.fromkeys(one.key for one in self.named_runtimes)
        return tuple(key for key in keys if key != (cost.runtime, cost.used_precision))

    def closed_form(self, family: str, spec: ArchSpec) -> dict[str, Any]:
        """What is known of a network of a family without building it; empty where nothing is. Raises SpaceError where
        the user's own closed form fails."""
        if family == Backbone.name:
            return self.backbone.analyse(spec).to_dict()
        own = self.own.get(family)
        known = None if own is None else own.analyse(spec)
        return closed_form(spec) if known is None else known.to_dict()

    def distils(self, spec: ArchSpec) -> bool:
        """Whether a network learns from the teacher. With kind `token`, one without such a token does not: most
        baselines."""
        settings = self.config.training.distillation
        return settings is not None and (settings.kind != "token" or deit.has_token(spec.model))

    def inherits(self, family: str) -> str | None:
        """Name of the pretrained weights that candidates of a family begin from parts of."""
        return (self.config.training.inherit or {}).get(family)

    def with_baselines(self, specs: Mapping[str, ArchSpec]) -> Plan:
        """The same with these baselines, in the config too."""
        return replace(
            self,
            config=self.config.with_baselines(specs),
            baselines=dict(specs),
            baseline_analysis={name: closed_form(spec) for name, spec in specs.items()},
        )


def make_plan(
    config: SearchConfig,
    data: DataSummary,
    informed: Sequence[Family] = (),
    own: Mapping[str, OwnFamily] | None = None,
) -> Plan:
    """A config that says nothing of baselines has the scaled ResNet alone; `search.pretrained.with_defaults` adds more.

    informed: families that know the networks of timm that the config names. own: the families of the user's that it
    names, by how it names them. Raises SpaceError when the space cannot be made for these images.
    """
    task = Task(data.image_size, data.channels, len(data.class_names))
    config = config.with_preset(config.space.preset or preset_for(task.image_size)).with_most_candidates()
    families, by_name = by_own_names(config.space.families, own or {})
    space = make_space(task, config.space.preset, families, config.space.ranges, informed, by_name)
    baselines = _baselines(config, space)
    return Plan(
        config=config,
        space=space,
        objectives=tuple(parse_objectives(config.objectives)),
        constraints=tuple(parse_constraints(config.constraints)),
        baselines=baselines,
        rungs=rungs.resolve(config.search.rungs, config.training.epochs, config.search.sampler),
        settings=job_settings(config),
        data=data,
        baseline_analysis={name: closed_form(spec) for name, spec in baselines.items()},
        own=by_name,
        backbone=next((each for each in informed if isinstance(each, Backbone)), Backbone()),
    )


def closed_form(spec: ArchSpec) -> dict[str, Any]:
    """What is known of a network without building it, as it is stored and shown; empty where nothing is."""
    return analysis.analyse(spec).to_dict() if analysis.knows(spec) else {}


def _baselines(config: SearchConfig, space: Space) -> dict[str, ArchSpec]:
    task = space.task
    if config.baselines is None:
        return {SCALED: baseline_of(space)}
    head = {"in_chans": task.channels, "num_classes": task.num_classes}
    return {
        name: ArchSpec(
            baseline.model, baseline.args | head, baseline.image_size or task.image_size, baseline.weights
        )
        for name, baseline in config.baselines.items()
    }


def baseline_of(space: Space) -> ArchSpec:
    """The scaled baseline."""
    return default_baseline(space.task, median_params(space, _count))


def _count(spec: ArchSpec) -> int:
    from spaces import models

    return guarded(f"{spec.model} with {dict(spec.args)}", "building it", lambda: models.count(spec))
