"""The sections of a config that are the search's own; the others are in `workers.settings`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from search import deadline, notify
from search.config_errors import nearest
from search.config_yaml import shown
from spaces import registry

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}")
REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
"""A class of the user's, `module:Class`."""

WEIGHTS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,94}")
MOST_CANDIDATES = 1_000_000
USUAL_CANDIDATES = 50
"""Of a search that nothing else ends."""

NAME_RULE = "needs 1 to 80 letters, digits, dots, dashes or underscores, and no dot or dash in front"


def _known(key: str, value: str, known: Mapping[str, Any]) -> None:
    if value not in known:
        raise ValueError(f"{key}: unknown {shown(value)}; {nearest(value, list(known))}")


def _within(key: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{key}: {value} is outside {low} to {high}")


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _rungs(value: Any) -> Any:
    numbers = isinstance(value, list | tuple) and all(type(item) is int for item in value)
    if value in ("auto", "none"):
        return value
    if value and numbers:
        return tuple(value)
    raise ValueError(f"{shown(value)} is none of auto, none, or a list of epochs such as [3, 9, 27]")


def _workers(value: Any) -> Any:
    if value == "auto" or (type(value) is int and 1 <= value <= 4096):
        return value
    raise ValueError(f"{shown(value)} is neither auto nor a whole number from 1 to 4096")


def _most(value: Any) -> Any:
    if value in ("auto", "none") or (type(value) is int and 1 <= value <= MOST_CANDIDATES):
        return value
    raise ValueError(f"{shown(value)} is none of auto, none, or a whole number from 1 to {MOST_CANDIDATES}")


def _bound(value: Any) -> Any:
    if isinstance(value, str) or type(value) in (int, float):
        return value
    raise ValueError(f"needs a number, or text such as 1.5x resnet, not {shown(value)}")


Bound = Annotated[float | str, BeforeValidator(_bound)]


class SearchSettings(Section):
    """How the space is searched.

    sampler: `auto` (random at first, then neighbours and crossovers of the front), or Optuna's by name.
    rungs: cumulative epochs after which a candidate has to earn its next ones, the last equal to
        training.epochs; `auto` for a geometric ladder with sampler `auto` and none with Optuna's; `none`
        trains everything in full.
    max_candidates: architectures to propose; rejected and failed ones count. `none` for as many as there is time for;
        `auto` for that where a deadline or a budget ends the search, else 50.
    deadline: "HH:MM", a duration such as 8h or 1h30m, or ISO 8601; None for no deadline.
    workers: jobs at a time; `auto` by the machine.
    engine: `ray`, or `inline` for one job at a time in the driver.
    seed: draws the candidates, together with their numbers.
    screen: `auto` leaves out proposals that are predicted to break a limit on a cost, once enough was measured to
        know how well that is predicted; `off` measures them all.
    """

    sampler: Literal["auto", "random", "tpe", "nsga2", "gp"] = "auto"
    rungs: Annotated[Literal["auto", "none"] | tuple[int, ...], BeforeValidator(_rungs)] = "auto"
    max_candidates: Annotated[Literal["auto", "none"] | int, BeforeValidator(_most)] = "auto"
    deadline: str | None = None
    workers: Annotated[Literal["auto"] | int, BeforeValidator(_workers)] = "auto"
    engine: Literal["ray", "inline"] = "ray"
    seed: int = 0
    screen: Literal["auto", "off"] = "auto"

    @model_validator(mode="after")
    def _check(self) -> Self:
        _within("seed", self.seed, 0, 2**31 - 1)
        if self.deadline is not None:
            try:
                deadline.check_form(self.deadline)
            except ValueError as error:
                raise ValueError(f"deadline: {error}") from None
        if not isinstance(self.rungs, str):
            _check_ladder(self.rungs)
        return self

    @property
    def most_candidates(self) -> float:
        """Infinite where time ends the search."""
        return self.max_candidates if isinstance(self.max_candidates, int) else math.inf


def _check_ladder(rungs: Sequence[int]) -> None:
    if rungs[0] < 1:
        raise ValueError(f"rungs: {list(rungs)} starts below 1 epoch")
    if any(low >= high for low, high in itertools.pairwise(rungs)):
        raise ValueError(f"rungs: {list(rungs)} is not increasing; sort it and leave no epoch twice")


class BudgetSettings(Section):
    """What a search may spend, beside `search.max_candidates` and `search.deadline`; None for no limit. When one is
    used up, nothing more starts, and trainings end with the epoch they are at.

    hours: in which the search is driven; what it is paused for does not count. device_hours: in which workers are in
        jobs, all workers together. epochs: trained by candidates, baselines and a teacher.
    energy_kwh: drawn by the device while the search is driven. disk_gb: of the search's checkpoints.
    """

    hours: float | None = None
    device_hours: float | None = None
    epochs: int | None = None
    energy_kwh: float | None = None
    disk_gb: float | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, value in self:
            if value is not None and not 0 < value < 1e9:
                raise ValueError(f"{name}: {value} is no amount to spend; give a positive number")
        return self

    @property
    def is_limited(self) -> bool:
        return any(value is not None for _, value in self)


class NotifySettings(Section):
    """webhook: address that the morning summary is posted to, as JSON, when the search has ended; None for nobody."""

    webhook: str | None = None

    @field_validator("webhook")
    @classmethod
    def _check_webhook(cls, webhook: str | None) -> str | None:
        if webhook is not None:
            notify.check(webhook)
        return webhook


class SpaceSettings(BaseModel):
    """What is searched. preset: a named space; None by image size. families: None for all of the preset; one of the
    user's own is named `module:Class`. image_size: sides in pixels that candidates see, one, a list, or low, high and
    step; None for that of the data.

    A key with a family's name narrows or changes its dimensions: a list of choices, or low, high and step.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, dict[str, Any]] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    preset: str | None = None
    families: tuple[str, ...] | None = None
    image_size: Any = None

    @property
    def references(self) -> tuple[str, ...]:
        """The families of the user's own, as they are named."""
        return tuple(name for name in self.families or () if REFERENCE.fullmatch(name))

    @property
    def ranges(self) -> dict[str, Any]:
        """Family -> dimension -> list of choices, or low, high and step; and `image_size`, for all of them."""
        shared = {} if self.image_size is None else {"image_size": self.image_size}
        return {**self.__pydantic_extra__, **shared}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.preset is not None:
            _known("preset", self.preset, registry.PRESETS)
        if self.image_size is not None:
            registry.image_sizes(self.image_size)
        if self.families is not None:
            if not self.families:
                raise ValueError(f"families: is empty; known: {', '.join(registry.FAMILIES)}")
            for family in self.families:
                if family not in (*registry.FAMILIES, *self.references):
                    near = nearest(family, list(registry.FAMILIES))
                    raise ValueError(
                        f"families: unknown {shown(family)}; {near}; a class of yours is module:Class"
                    )
        for family in self.__pydantic_extra__:
            if family not in registry.FAMILIES:
                if self.references:
                    continue  # it may be the name of one of those, which `search.own_families` will know
                known = ["preset", "families", "image_size", *registry.FAMILIES]
                raise ValueError(f"{family}: unknown key or family; {nearest(family, known)}")
            if self.families is not None and family not in self.families:
                raise ValueError(f"{family}: is not among space.families; add it there or remove this")
            if self.families is None and family == "zoo":
                raise ValueError(f"{family}: is searched only where space.families names it; add it there")
        return self


class BaselineSettings(Section):
    """A named timm model that is measured and trained the same way.

    model: timm's name. args: for timm's create_model; channels and classes are added.
    weights: pretrained weights that its training begins from; None for fresh ones.
    image_size: side in pixels that images are brought to for it; None for that of the data.
    """

    model: str
    args: dict[str, Any] = Field(default_factory=dict)
    weights: str | None = None
    image_size: int | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.image_size is not None:
            _within("image_size", self.image_size, 4, 1024)
        if self.weights is not None and not WEIGHTS.fullmatch(self.weights):
            raise ValueError(f"weights: {shown(self.weights)} is no name such as resnet18.a1_in1k")
        return self


class FinalistSettings(Section):
    """count: front members that are retrained over seeds at the end; 0 is the only count for now."""

    count: int = 0

    @field_validator("count")
    @classmethod
    def _none_yet(cls, count: int) -> int:
        if count != 0:
            raise ValueError(f"finalists are not built yet; use 0, not {count}")
        return count
