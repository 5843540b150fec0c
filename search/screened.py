"""What the record of a search says of proposals that were left out. Pure, and without numpy: `status` has no time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from search.objectives import Limit

RECORD = "screen"
"""Where it is kept, in the `data` of a search."""
MOST_MISSES_SHARE, LEAST_MISSES = 0.2, 3
"""Of what was checked: with more within the limit, nothing is left out."""


@dataclass(frozen=True)
class Tally:
    """checked: candidates measured though they were predicted to break a limit. misses: those that kept it."""

    checked: int
    misses: int

    @property
    def is_trusted(self) -> bool:
        return self.misses < LEAST_MISSES or self.misses <= MOST_MISSES_SHARE * self.checked


def tally(record: Mapping[str, Any], measured: Mapping[int, Mapping[str, float]]) -> Tally:
    """measured: candidate's number -> what was measured of it; those that were not yet, do not count."""
    verdicts = [
        Limit(kept["name"], kept["limit"], kept["upper"]).allows(measured[int(number)][kept["name"]])
        for number, kept in record.get("checked", {}).items()
        if kept["name"] in measured.get(int(number), {})
    ]
    return Tally(len(verdicts), sum(verdicts))


def summary(
    record: Mapping[str, Any] | None, measured: Mapping[int, Mapping[str, float]]
) -> dict[str, Any] | None:
    """What `status --json` gives: what was left out, and how well it is known that this was right. None where no
    predictor was ever in use."""
    if not record or not record["errors"]:
        return None
    found = tally(record, measured)
    return {
        "left_out": record["left_out"],
        "checked": found.checked,
        "misses": found.misses,
        "trusted": found.is_trusted,
        "errors": record["errors"],
    }


def words(found: Mapping[str, Any]) -> str:
    """A summary in a few clauses."""
    errors = found["errors"]
    limits = " or ".join(f"{name} {each['limit']:.4g}" for name, each in errors.items())
    parts = [f"{proposals(found['left_out'])} left out, predicted to break {limits}"]
    parts += [
        f"the predictor's median error on {name} is {each['median']:.0%}, 95% of its errors are under "
        f"{each['most']:.0%}, on {each['count']} measurements"
        for name, each in errors.items()
    ]
    if found["checked"]:
        parts.append(
            f"of {found['checked']} that were predicted so and measured nonetheless, {found['misses']} kept the limit"
        )
    if not found["trusted"]:
        parts.append("too many did, and nothing is left out any more")
    return "; ".join(parts)


def proposals(count: int) -> str:
    """`1 proposal`, `3 proposals`."""
    return "1 proposal" if count == 1 else f"{count} proposals"


def measured_of(rows: Iterable[Any]) -> dict[int, Mapping[str, float]]:
    """For `tally`: rows of candidates, by number."""
    return {row.number: row.measured for row in rows}


def remark(record: Mapping[str, Any] | None, number: int) -> str | None:
    """What was predicted of a candidate that was measured to check it; None for others."""
    kept = (record or {}).get("checked", {}).get(str(number))
    return None if kept is None else f"{kept['text']}; measured nonetheless, to check the prediction"
