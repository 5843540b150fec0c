"""SearchConfig: what the user asks for, checked without looking at data or devices.

`load` reads a YAML file; `from_dict` takes back what `to_dict` stored in the database. Every key is
documented at its field, here, in `config_sections` and in `workers.settings`; an unknown key is an error.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, field_validator, model_validator

from search import config_errors, config_yaml
from search.config_sections import (
    NAME,
    NAME_RULE,
    USUAL_CANDIDATES,
    BaselineSettings,
    Bound,
    BudgetSettings,
    FinalistSettings,
    NotifySettings,
    SearchSettings,
    Section,
    SpaceSettings,
)
from search.config_yaml import Document, Origins, shown
from search.errors import UsageError
from search.objectives import parse_constraints, parse_objectives
from spaces import baselines as defaults
from spaces.spec import ArchSpec
from workers import paths
from workers.distillation_settings import DistillationSettings, TeacherSettings
from workers.settings import CostSettings, DataSettings, JobSettings, LimitSettings, RecipeSettings


class SearchConfig(Section):
    """One search.

    objectives: the quantities that the front trades.
    constraints: quantity -> bound, an upper one for costs and a lower one for qualities; a number, or
        relative to a baseline (`1.5x resnet`).
    baselines: None for one convolutional network named `resnet` and those of `spaces.baselines.PRETRAINED` whose
        weights are to be had; {} for none. A search keeps those that it began with: `with_baselines`.
    artifacts: folder for checkpoints and the report; None for `<database>.artifacts`.
    """

    name: str
    data: DataSettings
    space: SpaceSettings = SpaceSettings()
    objectives: tuple[str, ...] = ("accuracy", "latency_ms")
    constraints: dict[str, Bound] = Field(default_factory=dict)
    cost: CostSettings = CostSettings()
    training: RecipeSettings = RecipeSettings()
    search: SearchSettings = SearchSettings()
    budget: BudgetSettings = BudgetSettings()
    limits: LimitSettings = LimitSettings()
    finalists: FinalistSettings = FinalistSettings()
    notify: NotifySettings = NotifySettings()
    baselines: dict[str, BaselineSettings] | None = None
    artifacts: str | None = None
    _origins: Origins = PrivateAttr(default_factory=Origins)

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError(f"{shown(name)} {NAME_RULE}")
        return name

    @field_validator("objectives")
    @classmethod
    def _check_objectives(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        parse_objectives(names)
        return names

    @field_validator("constraints")
    @classmethod
    def _check_constraints(cls, bounds: dict[str, Bound]) -> dict[str, Bound]:
        parse_constraints(bounds)
        return bounds

    @field_validator("baselines")
    @classmethod
    def _check_baselines(cls, baselines: dict[str, BaselineSettings] | None) -> Any:
        for name in baselines or {}:
            if not NAME.fullmatch(name):
                raise ValueError(f"{shown(name)} {NAME_RULE}")
        return baselines

    @field_validator("artifacts")
    @classmethod
    def _check_artifacts(cls, artifacts: str | None) -> str | None:
        if artifacts is not None and (not artifacts or "://" in artifacts):
            raise ValueError(f"{shown(artifacts)} is no folder; remote artifacts are not built yet")
        return artifacts

    @model_validator(mode="after")
    def _check_across(self) -> Self:
        rungs, epochs = self.search.rungs, self.training.epochs
        if not isinstance(rungs, str) and rungs[-1] != epochs:
            raise ValueError(f"search.rungs: {list(rungs)} has to end at training.epochs, which is {epochs}")
        if self.search.max_candidates == "none" and not self._ends_in_time:
            raise ValueError("search.max_candidates: none never ends; give search.deadline or a budget too")
        for constraint in parse_constraints(self.constraints):
            if constraint.baseline is not None and constraint.baseline not in self.baseline_names:
                known = ", ".join(self.baseline_names) or "none"
                raise ValueError(
                    f"constraints.{constraint.name}: unknown baseline {constraint.baseline!r}; known: {known}"
                )
        return self

    @property
    def _ends_in_time(self) -> bool:
        return self.search.deadline is not None or self.budget.is_limited

    @property
    def baseline_names(self) -> tuple[str, ...]:
        """Of all baselines that there may be."""
        if self.baselines is None:
            return (defaults.SCALED, *defaults.PRETRAINED)
        return tuple(self.baselines)

    def with_baselines(self, specs: Mapping[str, ArchSpec]) -> SearchConfig:
        """The same with these baselines spelled out."""
        settings = {
            name: BaselineSettings(
                model=spec.model, args=dict(spec.args), weights=spec.weights, image_size=spec.image_size
            )
            for name, spec in specs.items()
        }
        return self.model_copy(update={"baselines": settings})

    def with_preset(self, preset: str) -> SearchConfig:
        """The same with this preset spelled out."""
        return self.model_copy(update={"space": self.space.model_copy(update={"preset": preset})})

    def with_most_candidates(self) -> SearchConfig:
        """The same with the number of candidates that `auto` stands for."""
        if self.search.max_candidates != "auto":
            return self
        most = "none" if self._ends_in_time else USUAL_CANDIDATES
        return self.model_copy(update={"search": self.search.model_copy(update={"max_candidates": most})})

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, every default spelled out; `from_dict` takes them back."""
        return self.model_dump(mode="json")

    def error(self, key: str, text: str) -> UsageError:
        """An error about a dotted key, naming the file and line that it was written at."""
        return UsageError(self._origins.message(tuple(key.split(".")), text))


def load(path: str | Path, overrides: Sequence[str] = ()) -> SearchConfig:
    """The config in a YAML file, with `a.b=value` overrides applied.

    A relative path, such as `data.path`, `training.weights_dir` or `artifacts`, is relative to the file's folder, or to
    the working directory where an override gives it. Raises UsageError, one or two lines.
    """
    return check_document(config_yaml.read(path), Path(path).parent, overrides)


def load_text(text: str, overrides: Sequence[str] = (), name: str = "standard input") -> SearchConfig:
    """The same of a text, which has no folder: its paths have to be absolute. JSON is YAML."""
    document = config_yaml.parse(text, name)
    for path in _PATHS:
        given: Any = document.values
        for key in path:
            given = given.get(key) if isinstance(given, dict) else None
        if (
            isinstance(given, str)
            and _is_local(given)
            and not _expanded(given, path, document.origins).is_absolute()
        ):
            problem = f"{shown(given)} is relative, and {name} has no folder; give an absolute path"
            raise UsageError(document.origins.message(path, problem))
    return check_document(document, Path("/"), overrides)


def check_document(document: Document, folder: Path, overrides: Sequence[str] = ()) -> SearchConfig:
    """The config in a parsed document whose relative paths start at `folder`. Raises UsageError."""
    document = _anchored(document, folder)
    for assignment in overrides:
        document = config_yaml.override(document, assignment)
    return _checked(_anchored(document, Path()))


def from_dict(
    values: Mapping[str, Any], overrides: Sequence[str] = (), name: str = "stored config"
) -> SearchConfig:
    """The config that `to_dict` gave, with `a.b=value` overrides applied. Raises UsageError."""
    return check_document(Document(dict(values), Origins(name)), Path(), overrides)


def from_stored(
    values: Mapping[str, Any], overrides: Sequence[str] = (), name: str = "stored config"
) -> SearchConfig:
    """The same for a config out of the database, whatever version stored it, with the meaning that it had then: recipe
    `auto` trained all fresh weights by `plain` before there was `training.fresh_recipe`, all steps were executed in one
    way before there was a choice, and every proposal was measured before `search.screen`."""
    training = _BEFORE | values.get("training", {})
    search = {"screen": "off"} | values.get("search", {})
    return from_dict({**values, "training": training, "search": search}, overrides, name)


def job_settings(config: SearchConfig) -> JobSettings:
    """What a worker needs to know for any job of the search."""
    return JobSettings(data=config.data, recipe=config.training, cost=config.cost, limits=config.limits)


def sections() -> dict[str, tuple[str, ...]]:
    """Section -> its keys, "" for the top level; space also takes the names of the families."""
    keys = {"": tuple(SearchConfig.model_fields)}
    for section, kind in _SECTIONS.items():
        names = (
            kind.model_fields if issubclass(kind, BaseModel) else [f.name for f in dataclasses.fields(kind)]
        )
        keys[section] = tuple(names)
    return keys


_BEFORE = {
    "fresh_recipe": "plain",
    "precision": "fp32",
    "memory_format": "contiguous",
    "compile": "off",
    "threads": 1,
}
"""What settings of training meant before they were there."""

_SECTIONS: dict[str, Any] = {
    "data": DataSettings,
    "space": SpaceSettings,
    "cost": CostSettings,
    "training": RecipeSettings,
    "training.distillation": DistillationSettings,
    "training.distillation.teacher": TeacherSettings,
    "search": SearchSettings,
    "budget": BudgetSettings,
    "limits": LimitSettings,
    "finalists": FinalistSettings,
    "notify": NotifySettings,
    "baselines": BaselineSettings,
}


def _checked(document: Document) -> SearchConfig:
    # JSON, because pydantic's strict mode takes lists for tuples and mappings for dataclasses only there.
    text = json.dumps({key: value for key, value in document.values.items() if value is not None})
    try:
        config = SearchConfig.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise config_errors.usage_error(error, document.origins, sections()) from None
    config._origins = document.origins
    return config


def _anchored(document: Document, folder: Path) -> Document:
    """With the paths of `_PATHS` absolute. Raises UsageError for what can be none."""
    values, origins = document.values, document.origins
    for path in _PATHS:
        values = _with_absolute(values, path, lambda text, path=path: folder / _expanded(text, path, origins))
    return Document(values, origins)


_PATHS = (
    ("data", "path"),
    ("training", "weights_dir"),
    ("training", "distillation", "teacher", "checkpoint"),
    ("artifacts",),
)


def _with_absolute(
    values: dict[str, Any], path: Sequence[str], placed: Callable[[str], Path]
) -> dict[str, Any]:
    head, *rest = path
    given = values.get(head)
    if rest and isinstance(given, dict):
        return values | {head: _with_absolute(given, rest, placed)}
    if rest or not isinstance(given, str) or not _is_local(given):
        return values
    return values | {head: str(placed(given).absolute())}


def _is_local(text: str) -> bool:
    """Whether it is for the file system to say what it means."""
    return bool(text) and "://" not in text


def _expanded(text: str, path: Sequence[str], origins: Origins) -> Path:
    try:
        return paths.expanded(text)
    except ValueError as error:
        raise UsageError(origins.message(tuple(path), f"{shown(text)}: {error}")) from None
