"""What a front lacks and what is almost on it, in words, for the command line, the report and the pages. Pure."""

from __future__ import annotations

from collections import Counter

from dashboards import words
from search import gate
from search.front import FrontPoint, FrontView, Standing
from search.objectives import Quantity
from search.states import ENDED_SEARCH

_ENDS = {
    Standing.OUTSIDE: "trained in full but outside a limit",
    Standing.BORDERLINE: "trained in full but borderline",
    Standing.INCOMPARABLE: "trained in full but not measured under the search's conditions",
    Standing.UNFINISHED: "unfinished",
    Standing.STOPPED: "stopped early",
    Standing.REJECTED: "rejected",
    Standing.FAILED: "failed",
}


def why_empty(view: FrontView) -> str:
    """Why there is no front: not yet, or what has become of the candidates instead. Empty where there is one."""
    if view.front:
        return ""
    if view.search.state not in ENDED_SEARCH:
        return "No candidate has been trained in full within the limits yet, so there is no front."
    counts = Counter(point.standing for point in view.candidates)
    if not counts:
        return "The search ended without a candidate, so there is no front."
    ends = ", ".join(f"{counts[standing]} {text}" for standing, text in _ENDS.items() if counts[standing])
    none = "No candidate was trained in full within the limits, so there is no front."
    return f"{none} Of {len(view.candidates)}: {ends}."


def borderline(view: FrontView) -> str:
    """Which trained candidate is on no front only because an interval contains a limit: the best of them. Empty without
    one."""
    by = next((quantity for quantity in view.objectives if quantity.kind != "cost"), view.objectives[0])
    found = [point for point in view.candidates if point.standing == Standing.BORDERLINE]
    if not found:
        return ""
    best = _best(found, by)
    value = words.number(by.name, best.values[by.name])
    is_best = bool(view.front) and _best([*view.front, best], by) is best
    more = ", better than all that are" if is_best else ""
    many = "1 candidate is" if len(found) == 1 else f"{len(found)} candidates are"
    which = f"#{best.row.number}" if len(found) == 1 else f"the best of them is #{best.row.number}"
    why = gate.doubt(view.limits, best.values, best.intervals)
    return (
        f"{many} borderline, trained in full but on no front: {which}, {by.name} {value}{more}; "
        f"its {why or 'cost is not known well enough'}."
    )


def _best(points: list[FrontPoint], by: Quantity) -> FrontPoint:
    return max(points, key=lambda point: point.values[by.name] * (1 if by.maximise else -1))
