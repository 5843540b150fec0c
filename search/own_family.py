"""A family that a user wrote, behind the interface of ours: every answer of it is checked as it comes.

What the user's class raises, or gives that is not what a family has to give, is a SpaceError of one line that begins
with `families: MODULE:CLASS:`, so that it can be told at the key that named the class.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from spaces.costs import Analysis
from spaces.dims import Check, Choice, Condition, Domain, FloatRange, Grid, IntRange, Rule, SpaceError, Value
from spaces.sized import IMAGE_SIZE
from spaces.spec import ArchSpec, Task

T = TypeVar("T")
WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
WORD_RULE = "a plain word is: small letters, digits and _, a letter first, 40 at most"
MOST_VALUES = 10_000
MEMBERS = ("name", "conditions", "named", "limits", "rules", "spec")
METHODS = ("limits", "rules", "spec", "ranges", "analyse")
ALL_MEMBERS = tuple(dict.fromkeys((*MEMBERS, *METHODS)))


@dataclass(frozen=True)
class OwnFamily:
    """A `spaces.dims.Family`. reference: `module:Class`, as configs name it. own: the user's object.

    Beyond a Family: `ranges`, what is searched where nothing is said, and `analyse`.
    """

    reference: str
    name: str
    conditions: Mapping[str, Condition]
    named: Mapping[str, Mapping[str, Value]]
    own: Any

    @property
    def module(self) -> str:
        return self.reference.partition(":")[0]

    def limits(self, task: Task) -> dict[str, Domain]:
        found = self._domains("limits(task)", lambda: self.own.limits(task))
        if not found:
            raise self.wrong("limits(task) names no dimension")
        for key, domain in found.items():
            if not (isinstance(key, str) and WORD.fullmatch(key)):
                raise self.wrong(f"limits(task): {key!r} is no name of a dimension; {WORD_RULE}")
            if reason := _no_domain(domain):
                raise self.wrong(f"limits(task): {key}: {reason}")
        self._check_conditions(list(found))
        return found

    def ranges(self, task: Task) -> dict[str, Domain | Grid] | None:
        """What is searched where nothing is said; None for all that is legal."""
        if not hasattr(self.own, "ranges"):
            return None
        legal = self.limits(task)
        found = self._domains("ranges(task)", lambda: self.own.ranges(task))
        for key, domain in found.items():
            if key not in legal:
                raise self.wrong(f"ranges(task): {key!r} is none of its dimensions: {', '.join(legal)}")
            if isinstance(domain, Grid):
                if reason := _no_grid(domain, legal[key]):
                    raise self.wrong(f"ranges(task): {key}: {reason}")
                continue
            if reason := _no_domain(domain):
                raise self.wrong(f"ranges(task): {key}: {reason}")
            if outside := [value for value in domain.values if value not in legal[key]]:
                raise self.wrong(f"ranges(task): {key}: {outside[0]!r} is not legal; legal: {legal[key]}")
        return found

    def rules(self, task: Task) -> list[Rule]:
        legal = self.limits(task)
        found = self._ask("rules(task)", lambda: self.own.rules(task))
        if not isinstance(found, list | tuple):
            raise self.wrong(f"rules(task) gives {_shown(found)}, no list; [] is one")
        checked = []
        for number, rule in enumerate(found, start=1):
            if not isinstance(rule, Rule):
                raise self.wrong(f"rules(task): number {number} is {_shown(rule)}, not a spaces.dims.Rule")
            if not (isinstance(rule.keys, tuple | list) and all(isinstance(key, str) for key in rule.keys)):
                raise self.wrong(
                    f"rules(task): number {number}: its keys are {_shown(rule.keys)}, no tuple of dimensions"
                )
            if unknown := [key for key in rule.keys if key not in legal]:
                raise self.wrong(
                    f"rules(task): number {number} is about {unknown[0]!r}, which is no dimension"
                )
            checked.append(Rule(tuple(rule.keys), self._checked(number, rule.check)))
        return checked

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        spec = self._ask(f"spec(task, {dict(values)})", lambda: self.own.spec(task, dict(values)))
        if not isinstance(spec, ArchSpec):
            raise self.wrong(f"spec() gives {_shown(spec)}, not a spaces.spec.ArchSpec")
        if spec.weights is not None:
            raise self.wrong(f"spec() names weights, {spec.weights!r}: pretrained networks are the zoo's")
        size = values.get(IMAGE_SIZE, task.image_size)
        head = {"in_chans": task.channels, "num_classes": task.num_classes}
        for name, wanted in head.items():
            if spec.args.get(name) != wanted:
                raise self.wrong(f"spec(): args need {name}: {wanted}, as the task says")
        if spec.image_size != size:
            raise self.wrong(f"spec(): image_size is {spec.image_size}, where the task says {size}")
        return spec

    def analyse(self, spec: ArchSpec) -> Analysis | None:
        """The user's own closed form of a network; None without one."""
        if not hasattr(self.own, "analyse"):
            return None
        found = self._ask("analyse(spec)", lambda: self.own.analyse(spec))
        if not isinstance(found, Analysis):
            raise self.wrong(f"analyse(spec) gives {_shown(found)}, not a spaces.costs.Analysis")
        return found

    def wrong(self, text: str) -> SpaceError:
        """An error about the class."""
        return SpaceError(f"families: {self.reference}: {text}")

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        return guarded(self.reference, what, call)

    def _domains(self, what: str, call: Callable[[], Any]) -> dict[str, Any]:
        found = self._ask(what, call)
        if not isinstance(found, Mapping):
            raise self.wrong(f"{what} gives {_shown(found)}, no mapping of dimensions to domains")
        return dict(found)

    def _checked(self, number: int, check: Check) -> Check:
        def checked(values: Mapping[str, Any]) -> str | None:
            reason = self._ask(f"the check of rule {number} at {dict(values)}", lambda: check(values))
            if reason is not None and not (isinstance(reason, str) and reason.strip()):
                raise self.wrong(
                    f"the check of rule {number} gives {_shown(reason)}: a reason against the values, or None"
                )
            return None if reason is None else _short(reason)

        return checked

    def _check_conditions(self, keys: Sequence[str]) -> None:
        for key, condition in self.conditions.items():
            if key not in keys:
                raise self.wrong(f"conditions: {key!r} is none of its dimensions: {', '.join(keys)}")
            if condition[0] not in keys[: keys.index(key)]:
                raise self.wrong(f"conditions: {key}: limits(task) has no {condition[0]!r} in front of it")


def guarded(reference: str, what: str, call: Callable[[], T]) -> T:
    """What `call`, code of a user's, gives. Raises SpaceError saying that `what` raises something; the traceback is
    in its cause."""
    from workers.perform import attempt

    given: list[T] = []
    failure = attempt(lambda: given.append(call()))
    if failure is not None:
        raise SpaceError(f"families: {reference}: {what} raises {failure.reason}") from RuntimeError(
            failure.detail
        )
    return given[0]


def by_own_names(
    families: Sequence[str] | None, own: Mapping[str, OwnFamily]
) -> tuple[list[str] | None, dict[str, OwnFamily]]:
    """The families that are named, those of `own` (by `module:Class`) by their own names; and these by name."""
    names = None if families is None else [own[name].name if name in own else name for name in families]
    return names, {family.name: family for family in own.values()}


def own_family(reference: str, kind: type[Any]) -> OwnFamily:
    """Of the class that `reference` names. Raises SpaceError naming the member that is missing or wrong.

    A class without the methods of a family, of which a module may know many, is not even made.
    """

    def wrong(text: str) -> SpaceError:
        return SpaceError(f"families: {reference}: {text}")

    def lacks(members: Sequence[str]) -> SpaceError:
        return wrong(f"is no family: it lacks {', '.join(members)}; a family has {', '.join(MEMBERS)}")

    if missing := [method for method in METHODS if method in MEMBERS and not hasattr(kind, method)]:
        raise lacks(missing)
    name = reference.partition(":")[2]
    own = guarded(reference, f"{name}()", kind)
    has = guarded(
        reference, name, lambda: {each: getattr(own, each) for each in ALL_MEMBERS if hasattr(own, each)}
    )
    if missing := [member for member in MEMBERS if member not in has]:
        raise lacks(missing)
    for method in METHODS:
        if method in has and not callable(has[method]):
            raise wrong(f"{method} is {_shown(has[method])}, no method")
    if not (isinstance(has["name"], str) and WORD.fullmatch(has["name"])):
        raise wrong(f"name is {_shown(has['name'])}; {WORD_RULE}")
    for member in ("conditions", "named"):
        if not isinstance(has[member], Mapping):
            raise wrong(f"{member} is {_shown(has[member])}, no mapping; {{}} is one")
    for key, condition in has["conditions"].items():
        is_pair = isinstance(condition, tuple) and len(condition) == 2 and isinstance(condition[1], tuple)
        if not is_pair:
            raise wrong(f"conditions: {key!r}: {_shown(condition)} is no (dimension, (value, ...))")
    return OwnFamily(reference, has["name"], has["conditions"], has["named"], own)


def _no_domain(domain: object) -> str | None:
    """Why something is no domain that can be searched, or None where it is one."""
    if isinstance(domain, Choice):
        return _no_choice(domain.values)
    if not isinstance(domain, IntRange | FloatRange):
        return f"{_shown(domain)} is none of spaces.dims.Choice, IntRange and FloatRange"
    kind = int if isinstance(domain, IntRange) else float
    bounds = (domain.low, domain.high, domain.step)
    if any(type(bound) is not kind or not math.isfinite(bound) for bound in bounds):
        return f"{_shown(domain)}: low, high and step need to be {kind.__name__}"
    if domain.step <= 0 or domain.low > domain.high:
        return f"{_shown(domain)}: needs a positive step, and low not above high"
    steps = (domain.high - domain.low) / domain.step
    if steps >= MOST_VALUES:
        return f"{_shown(domain)}: has over {MOST_VALUES:,} values"
    if abs(steps - round(steps)) > 1e-6:
        return f"{_shown(domain)}: high is no whole number of steps above low"
    return None


def _no_choice(values: object) -> str | None:
    if not isinstance(values, tuple):
        return f"Choice needs a tuple of values, not {_shown(values)}"
    if len(values) > MOST_VALUES:
        return f"Choice: has over {MOST_VALUES:,} values"
    for value in values:
        if type(value) not in (str, int, float, bool) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            return f"Choice: {_shown(value)} is no str, int, float or bool"
    if len(set(values)) < len(values):
        return f"Choice: {_shown(values)} has a value twice"
    return None


def _no_grid(grid: Grid, legal: Domain) -> str | None:
    """Why a grid of patches says nothing of a dimension, or None where it does."""
    if type(grid.low) is not int or type(grid.high) is not int or not 1 <= grid.low <= grid.high:
        return f"{_shown(grid)}: low and high need to be whole numbers from 1, low not above high"
    if any(type(value) is not int or value < 1 for value in legal.values):
        return f"{_shown(grid)} is for sizes of patches: whole numbers from 1; legal: {_short(str(legal))}"
    return None


def _shown(value: object) -> str:
    return _short(repr(value), 80)


def _short(text: str, most: int = 300) -> str:
    """On one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."
