"""What somebody wants to know of a search in the morning: the best for each cost, the knee, what failed and is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from search import budget, foreseen, hints, notify
from search.front import FrontPoint, FrontView, Standing
from search.objectives import Quantity
from search.pick import NothingFits, Option, Wish, pick
from search.states import CandidateState
from search.store.read.jobs import busy_seconds
from search.store.read.results import num_epochs
from search.store.read.status import iso
from search.store.reader import Reader
from workers.counting import counted, interval

FILE = "summary.md"
_MOST_FAILED = 10


def summary(view: FrontView, busy: float, epochs: int) -> dict[str, Any]:
    """As JSON. busy: seconds that workers were in jobs. epochs: trained.

    `best` has one entry a member of the front, which is the best for what it costs, cheapest first. `busy_share`: of
    the workers' time while the search was driven.
    """
    search = view.search
    workers = search.data.get("workers")
    hours = search.data.get(budget.RECORD, {}).get("hours")
    states = [point.row.state for point in view.candidates]
    failed = [point for point in view.candidates if point.row.state == CandidateState.FAILED]
    return {
        "search": search.name,
        "state": str(search.state),
        "reason": search.reason,
        "started": iso(search.started),
        "ended": iso(search.ended),
        "deadline": iso(search.deadline),
        "hours": hours,
        "busy_share": busy / (3600 * hours * workers) if hours and workers else None,
        "objectives": [quantity.name for quantity in view.objectives],
        "best": [_point(point, view.objectives) for point in view.front],
        "knee": _knee(view),
        "baselines": [_point(point, view.objectives) for point in view.baselines if point.values],
        "candidates": {str(state): states.count(state) for state in CandidateState if state in states},
        "failed": [{"candidate": p.row.number, "reason": p.row.reason} for p in failed[:_MOST_FAILED]],
        "left": sum(state in (CandidateState.STOPPED, CandidateState.WAITING) for state in states),
        "forecasts": foreseen.against_fact(search, len(states), epochs),
    }


def of(reader: Reader, view: FrontView) -> dict[str, Any]:
    """The summary of a search that is in the database."""
    number = view.search.id
    return summary(view, busy_seconds(reader, number), num_epochs(reader, number))


def tell(found: Mapping[str, Any], artifacts: Path, webhook: str | None) -> list[str]:
    """Writes the summary beside the report, and posts it; returns what to say of both."""
    path = artifacts / FILE
    path.write_text(text(found), encoding="utf-8")
    said = [f"summary: {path}"]
    if webhook is not None:
        trouble = notify.post(webhook, found)
        said.append(f"warning: notify.webhook: {trouble}" if trouble else f"posted to {webhook}")
    return said


def text(found: Mapping[str, Any]) -> str:
    """`summary` as Markdown."""
    reason = f" ({found['reason']})" if found["reason"] else ""
    counts = ", ".join(f"{count} {state}" for state, count in found["candidates"].items()) or "none"
    lines = [f"# {found['search']}: {found['state']}{reason}", "", f"Candidates: {counts}."]
    if found["hours"] is not None:
        share = found["busy_share"]
        lines.append(
            f"Driven for {found['hours']:.2f} hours"
            + (f"; workers were in jobs for {share:.0%} of their time." if share is not None else ".")
        )
    lines += [f"Foreseen: {foreseen.status_words(each)}." for each in found["forecasts"]]
    lines += ["", "## The best for what it costs", ""]
    lines += [f"- {_line(each)}" for each in found["best"]] or ["Nothing has been trained in full."]
    if found["knee"]:
        lines += ["", f"Knee: {_line(found['knee'])}. {found['knee']['why']}"]
    if found["baselines"]:
        lines += ["", "## Baselines", "", *(f"- {_line(each)}" for each in found["baselines"])]
    if found["failed"]:
        lines += ["", "## Failed", ""]
        lines += [f"- #{each['candidate']}: {each['reason']}" for each in found["failed"]]
    if found["left"]:
        again = hints.command("resume", found["search"], "--set", "search.deadline=8h")
        lines += ["", f"{counted(found['left'], 'candidate')} may train on: `{again}`"]
    return "\n".join(lines) + "\n"


def _knee(view: FrontView) -> dict[str, Any] | None:
    points = [p for p in view.candidates if p.standing is Standing.FRONT]
    if len(points) < 2:
        return None
    options = [Option(f"#{point.row.number}", point.values, point.intervals) for point in points]
    try:
        picked = pick(options, view.objectives, Wish(rule="knee"))
    except NothingFits:
        return None
    return _point(points[picked.chosen], view.objectives) | {"why": picked.reason}


def _point(point: FrontPoint, objectives: Sequence[Quantity]) -> dict[str, Any]:
    names = [quantity.name for quantity in objectives if quantity.name in point.values]
    return {
        "candidate": point.row.number,
        "name": point.row.name or f"#{point.row.number}",
        "family": point.row.family,
        "values": {name: point.values[name] for name in names},
        "intervals": {name: list(point.intervals[name]) for name in names if name in point.intervals},
    }


def _line(found: Mapping[str, Any]) -> str:
    def one(name: str, value: float) -> str:
        bounds = found["intervals"].get(name)
        return f"{name} {value:.4g}" + (f" ({interval(*bounds)})" if bounds else "")

    values = ", ".join(one(name, value) for name, value in found["values"].items())
    return f"{found['name']} {found['family']}: {values}"
