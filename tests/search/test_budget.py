"""Budgets: what is used up, and how much time is left of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from search.budget import Budget, Spent, epochs_left, seconds_left, used_up
from search.config import from_dict
from search.config_sections import USUAL_CANDIDATES
from search.errors import UsageError

CONFIG: dict[str, Any] = {"name": "b", "data": {"source": "digits"}}


@pytest.mark.parametrize("name", ["hours", "device_hours", "epochs", "energy_kwh", "disk_gb"])
def test_each_part_is_used_up_by_itself_and_said_by_its_key(name: str) -> None:
    budget = Budget.of({name: 2, "hours": 2} if name != "hours" else {"hours": 2})
    assert used_up(budget, Spent()) is None
    spent = used_up(budget, Spent(**{name: 2}))
    assert spent is not None
    assert spent.startswith(f"budget.{name} is used up: 2 of 2 ")


def test_device_hours_last_as_long_as_the_workers_share_them() -> None:
    budget = Budget(hours=8, device_hours=12)
    assert seconds_left(budget, Spent(hours=1, device_hours=2), workers=1) == 7 * 3600
    assert seconds_left(budget, Spent(hours=1, device_hours=2), workers=4) == 2.5 * 3600
    assert seconds_left(Budget(), Spent(hours=99), workers=4) == math.inf
    assert epochs_left(Budget(epochs=10), Spent(epochs=12)) == 0


@pytest.mark.parametrize(
    ("more", "most"),
    [
        ({}, USUAL_CANDIDATES),
        ({"search": {"deadline": "8h"}}, math.inf),
        ({"budget": {"hours": 8}}, math.inf),
        ({"budget": {"epochs": 500}, "search": {"max_candidates": 7}}, 7),
    ],
)
def test_only_what_nothing_else_ends_has_a_number_of_candidates_by_itself(more: Any, most: float) -> None:
    config = from_dict({**CONFIG, **more}).with_most_candidates()
    assert config.search.most_candidates == most


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"search": {"max_candidates": "none"}}, "search.max_candidates: none never ends"),
        ({"search": {"max_candidates": 0}}, "none of auto, none, or a whole number"),
        ({"search": {"max_candidates": True}}, "none of auto, none, or a whole number"),
        ({"budget": {"hours": 0}}, "hours: 0.0 is no amount to spend"),
        ({"budget": {"epochs": 2.5}}, "epochs"),
        ({"budget": {"money": 5}}, "money"),
    ],
)
def test_a_budget_that_is_none_is_refused_by_its_key(more: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text.replace(".", r"\.")):
        from_dict({**CONFIG, **more})
