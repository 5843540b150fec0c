"""Leaves out proposals that are predicted to break a limit for sure, so that hopeless networks are not built.

It works once a predictor has enough measurements of the search and a known error, and checks itself: one in ten of what
it would leave out is measured nonetheless. Its record is kept in the search's row, so that a resumed search leaves out
what it would have left out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from search.objectives import Limit, quantity
from search.predictor import Errors, Prediction, Predictor, learnt
from workers.counting import interval

CHECKED_SHARE = 0.1
MOST_REDRAWS = 20
"""Proposals that one candidate may cost; the next is measured, whatever is predicted of it."""

Features = Sequence[float]


@dataclass(frozen=True)
class Example:
    """A network that was measured. features: None where nothing is known of it in closed form."""

    features: Features | None
    costs: Mapping[str, float]


@dataclass(frozen=True)
class Broken:
    """A limit that a network is predicted to break, with the prediction."""

    limit: Limit
    prediction: Prediction

    @property
    def text(self) -> str:
        found, side = self.prediction, "over" if self.limit.upper else "under"
        return (
            f"{self.limit.name} was predicted to be {found.value:.4g} ({interval(found.low, found.high)}), "
            f"{side} the limit {self.limit.value:.4g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As it is kept of a candidate that was measured nonetheless."""
        limit = {"name": self.limit.name, "limit": self.limit.value, "upper": self.limit.upper}
        return {**limit, "text": self.text}


@dataclass
class Screen:
    """Of one search. Fitted anew only when there are enough more measurements."""

    _fitted: dict[str, tuple[int, Predictor]] = field(default_factory=dict)

    def broken(
        self, features: Features | None, limits: Sequence[Limit], examples: Sequence[Example]
    ) -> Broken | None:
        """The first limit that all of the prediction's interval breaks; None also where nothing can be said.

        examples: what was measured, by number.
        """
        if features is None:
            return None
        for limit in limits:
            predictor = self._predictor(limit.name, examples)
            if predictor is None:
                continue
            prediction = predictor.predict(features)
            if not (limit.allows(prediction.low) or limit.allows(prediction.high)):
                return Broken(limit, prediction)
        return None

    def errors(self) -> dict[str, Errors]:
        """Of the predictors in use, by quantity."""
        return {name: predictor.errors for name, (_, predictor) in self._fitted.items()}

    def _predictor(self, name: str, examples: Sequence[Example]) -> Predictor | None:
        if quantity(name).kind != "cost":
            return None
        table = [
            (example.features, example.costs[name])
            for example in examples
            if example.features is not None and example.costs.get(name, 0.0) > 0
        ]
        count = learnt(len(table))
        if not count:
            return None
        if name not in self._fitted or self._fitted[name][0] != count:
            rows, costs = zip(*table[:count], strict=True)
            self._fitted[name] = (count, Predictor(rows, costs))
        return self._fitted[name][1]


@dataclass
class Sieve:
    """The screen for the proposals of one candidate.

    trusted: False where nothing is left out. left_out: proposals so far, why of the last one in words. checked: what is
    predicted of the candidate, if it is measured nonetheless.
    """

    screen: Screen
    limits: Sequence[Limit]
    examples: Sequence[Example]
    trusted: bool
    left_out: int = 0
    why: str = ""
    checked: Broken | None = None

    def leaves_out(self, features: Features | None, seed: int) -> bool:
        """Whether a proposal is left out. seed: decides whether it is one of those that are checked."""
        self.checked = None
        if not self.trusted:
            return False
        broken = self.screen.broken(features, self.limits, self.examples)
        if broken is None:
            return False
        if self.left_out >= MOST_REDRAWS or random.Random(seed).random() < CHECKED_SHARE:
            self.checked = broken
            return False
        self.left_out += 1
        self.why = broken.text
        return True

    def kept(self, record: Mapping[str, Any], number: int) -> dict[str, Any]:
        """The search's record after candidate `number` was chosen."""
        checked = dict(record.get("checked", {}))
        if self.checked is not None:
            checked[str(number)] = self.checked.to_dict()
        limits = {limit.name: limit.value for limit in self.limits}
        errors = {
            name: asdict(found) | {"limit": limits[name]} for name, found in self.screen.errors().items()
        }
        left_out = record.get("left_out", 0) + self.left_out
        return {"left_out": left_out, "checked": checked, "errors": errors or record.get("errors", {})}
