"""The front of a search, as the command line, the report and the pages show it.

Only figures of the search's own device, runtime, precision, threads, batch size and protocol are compared
with each other, and only candidates that were trained in full can be on the front.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from search import gate, named_runtimes, other_devices, pareto
from search.brought import Brought
from search.front_words import accuracy_after, how_measured
from search.objectives import QUANTITIES, Limit, Quantity, parse_constraints, parse_objectives, resolve
from search.states import CandidateState
from search.store.read.candidates import candidates
from search.store.read.results import measurements_of_search
from search.store.read.rows import CandidateRow, MeasurementView, SearchRow
from search.store.reader import Reader
from search.teacher import teacher_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Known = tuple[dict[str, float], dict[str, tuple[float, float]]]
"""Of a candidate: values by quantity, and the intervals of those that have one."""

MEASURED = ("latency_ms", "latency_ms_p95", "throughput", "peak_memory_mb", "energy_mj", "model_mb")


class Standing(StrEnum):
    """Where a candidate stands to the front. Finished ones are on it, dominated, outside a constraint, borderline,
    whose cost is not known well enough to tell whether it keeps one, or incomparable, which have no figures under the
    search's conditions."""

    FRONT = "front"
    DOMINATED = "dominated"
    OUTSIDE = "outside"
    BORDERLINE = "borderline"
    INCOMPARABLE = "incomparable"
    UNFINISHED = "unfinished"
    STOPPED = "stopped"
    REJECTED = "rejected"
    FAILED = "failed"
    BASELINE = "baseline"


@dataclass(frozen=True)
class Conditions:
    """Under which all measured figures of one front were taken."""

    device_id: str
    device_name: str
    threads: int
    runtime: str
    precision: str
    batch_size: int
    protocol: str
    cache: str = "hot"


@dataclass(frozen=True)
class FrontPoint:
    """A candidate or baseline as it stands. values, intervals (95%): by quantity, measured ones under the
    search's conditions only. module: of the user's own, to import before timm builds it; None where timm and
    `spaces.models` are enough."""

    row: CandidateRow
    standing: Standing
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    module: str | None = None

    def to_dict(self) -> dict[str, Any]:
        row = self.row
        return {
            "candidate": row.number,
            **({"name": row.name} if row.is_baseline else {}),
            "family": row.family,
            "spec": row.spec.to_dict(),
            "digest": row.digest,
            "values": dict(self.values),
            "intervals": {name: list(interval) for name, interval in self.intervals.items()},
            "state": str(row.state),
            "standing": str(self.standing),
            "rung": row.rung,
            "epoch": row.epoch,
            "reason": row.reason,
        }


@dataclass(frozen=True)
class FrontView:
    """front: by the first cost among the objectives, cheapest first; else best first. baselines: in their
    order.
    candidates: all, by number, those of the front included. conditions: None before anything was measured.
    limits: constraints as they stand. measured_how: quantity -> a sentence on how its values were taken.
    teacher: as of `teacher_of`."""

    search: SearchRow
    objectives: tuple[Quantity, ...]
    limits: tuple[Limit, ...]
    conditions: Conditions | None
    baselines: tuple[FrontPoint, ...]
    front: tuple[FrontPoint, ...]
    candidates: tuple[FrontPoint, ...]
    measured_how: Mapping[str, str]
    teacher: Mapping[str, Any] | None = None

    def measured_how_of(self, point: FrontPoint) -> dict[str, str]:
        """The sentences on the quantities that one candidate has; its own epochs in that on the accuracy."""
        own = {"accuracy": accuracy_after(self.search, point.row.epoch)}
        return {name: how for name, how in {**self.measured_how, **own}.items() if name in point.values}

    def to_dict(self, *, all: bool = False) -> dict[str, Any]:
        """The object that `front NAME --json` prints; with `all`, every candidate."""
        device = {"id": self.search.device_id, "name": None, "threads": None}
        if self.conditions is not None:
            found = self.conditions
            device = {"id": found.device_id, "name": found.device_name, "threads": found.threads}
        shown = {
            "search": self.search.name,
            "state": str(self.search.state),
            "device": device,
            "conditions": None if self.conditions is None else asdict(self.conditions),
            "objectives": [quantity.name for quantity in self.objectives],
            "constraints": {limit.name: limit.value for limit in self.limits},
            "measured_how": dict(self.measured_how),
            "baselines": [point.to_dict() for point in self.baselines],
            "front": [point.to_dict() for point in self.front],
        }
        if all:
            shown["candidates"] = [point.to_dict() for point in self.candidates]
        return shown


def front_view(session: Reader | Session, search: SearchRow, device: str | None = None) -> FrontView:
    """The front as the database has it now. device: another one that its networks were measured on, by id or label;
    then costs are those measured there, and what was not is incomparable. Raises UserError naming the devices."""
    objectives = parse_objectives(search.config["objectives"])
    if device is None:
        measured = measurements_of_search(session, search.id, search.device_id)
        conditions = _conditions(search, measured)
    else:
        measured = other_devices.of_device(measurements_of_search(session, search.id), device, search.name)
        conditions = _most_common(measured, search.config["cost"]["batch_size"])
    figures = _figures(conditions, measured)
    further = _further(search, conditions, measured)
    asked = named_runtimes.asked(search.config)
    rows = candidates(session, search.id, role=None)
    known = {
        row.id: _known(row, figures.get(row.id), {at: of.get(row.id) for at, of in further.items()}, asked)
        for row in rows
    }
    limits = _limits(search, [(row, known[row.id]) for row in rows if row.is_baseline])
    standings = _standings(rows, known, objectives, limits)
    brought = Brought.of(search.data)
    points = [
        FrontPoint(row, standings[row.id], *known[row.id], brought.module(row.family, row.spec.model))
        for row in rows
    ]
    front = [point for point in points if point.standing == Standing.FRONT]
    return FrontView(
        search=search,
        objectives=objectives,
        limits=limits,
        conditions=conditions,
        baselines=tuple(point for point in points if point.row.is_baseline),
        front=tuple(_sorted(front, objectives)),
        candidates=tuple(point for point in points if not point.row.is_baseline),
        measured_how=how_measured(
            search,
            list(figures.values()),
            {at: list(of.values()) for at, of in further.items()},
            some_shorter=any(0 < row.epoch < search.config["training"]["epochs"] for row in rows),
        ),
        teacher=teacher_of(session, search),
    )


def _conditions(search: SearchRow, measured: Sequence[MeasurementView]) -> Conditions | None:
    """The configured ones; of protocols, that of most measurements, of equals the newest."""
    cost = search.config["cost"]
    fitting = [
        _conditions_of(m)
        for m in measured
        if (m.runtime, m.threads, m.batch_size) == (cost["runtime"], cost["threads"], cost["batch_size"])
        and m.precision == named_runtimes.precision_of(search.config)
        and _cache(m) == cost.get("cache", "hot")
    ]
    return Counter(fitting).most_common(1)[0][0] if fitting else None


def _most_common(measured: Sequence[MeasurementView], batch_size: int) -> Conditions | None:
    """Of another device: those of most measurements at the search's batch size, or at any where there are none."""
    fitting = [_conditions_of(m) for m in measured if m.batch_size == batch_size]
    found = Counter(fitting or [_conditions_of(m) for m in measured])
    return found.most_common(1)[0][0] if found else None


def _conditions_of(m: MeasurementView) -> Conditions:
    name = m.figures["device_name"]
    return Conditions(
        m.device_id, name, m.threads, m.runtime, m.precision, m.batch_size, m.protocol, _cache(m)
    )


def _figures(
    conditions: Conditions | None, measured: Sequence[MeasurementView]
) -> dict[int, Mapping[str, Any]]:
    """Candidate's row id -> figures of its newest measurement under the conditions, unflagged before
    flagged."""
    chosen: dict[int, Mapping[str, Any]] = {}
    wanted = None if conditions is None else _key(conditions)
    for m in measured:
        if _key(_conditions_of(m)) != wanted or m.candidate_id is None:
            continue
        known = chosen.get(m.candidate_id)
        if known is None or (known["flags"] and not m.figures["flags"]):
            chosen[m.candidate_id] = m.figures
    return chosen


def _further(
    search: SearchRow, conditions: Conditions | None, measured: Sequence[MeasurementView]
) -> dict[str, dict[int, Mapping[str, Any]]]:
    """The same in each runtime that objectives or constraints name, by how they name it."""
    if conditions is None:
        return {}
    return {
        one.suffix: _figures(replace(conditions, runtime=one.runtime, precision=one.precision), measured)
        for one in named_runtimes.of_config(search.config)
    }


def _cache(m: MeasurementView) -> str:
    return m.figures.get("cache", "hot")


def _key(conditions: Conditions) -> tuple[Any, ...]:
    return tuple(value for name, value in asdict(conditions).items() if name != "device_name")


def _known(
    row: CandidateRow,
    figures: Mapping[str, Any] | None,
    further: Mapping[str, Mapping[str, Any] | None],
    asked: Sequence[str],
) -> Known:
    """Values and intervals of a candidate: what was measured from `figures` alone, what names a runtime from those of
    `further`, as far as the search asks for it, the rest from its row."""
    values = {
        name: row.measured[name] for name in QUANTITIES if name in row.measured and name not in MEASURED
    }
    intervals = {name: interval for name, interval in row.intervals.items() if name in values}
    if figures is not None:
        values |= {name: figures[name] for name in MEASURED if figures.get(name) is not None}
        intervals["latency_ms"] = (figures["latency_ms_low"], figures["latency_ms_high"])
    ordered = {name: values[name] for name in QUANTITIES if name in values}
    for name in asked:
        found = further.get(named_runtimes.suffix_of(name))
        if found is not None:
            base = named_runtimes.base_of(name)
            ordered[name] = found[base]
            if base == "latency_ms":
                intervals[name] = (found["latency_ms_low"], found["latency_ms_high"])
    return ordered, intervals


def _limits(search: SearchRow, baselines: Sequence[tuple[CandidateRow, Known]]) -> tuple[Limit, ...]:
    """Constraints as numbers; a relative one is left out until its baseline has the figure."""
    values = {row.name: known[0] for row, known in baselines if row.name is not None}
    intervals = {row.name: known[1] for row, known in baselines if row.name is not None}
    constraints = [
        constraint
        for constraint in parse_constraints(search.config["constraints"])
        if constraint.baseline is None or constraint.name in values.get(constraint.baseline, {})
    ]
    return resolve(constraints, values, intervals)


def _standings(
    rows: Sequence[CandidateRow],
    known: Mapping[int, Known],
    objectives: Sequence[Quantity],
    limits: Sequence[Limit],
) -> dict[int, Standing]:
    """Row id -> standing."""
    standings = {row.id: _apart(row, known[row.id], objectives, limits) for row in rows}
    running = [row.id for row in rows if standings[row.id] == Standing.FRONT]
    table = [[known[key][0][quantity.name] for quantity in objectives] for key in running]
    kept = pareto.non_dominated(table, [quantity.maximise for quantity in objectives])
    return standings | {
        key: Standing.FRONT if best else Standing.DOMINATED for key, best in zip(running, kept, strict=True)
    }


def _apart(
    row: CandidateRow,
    known: Known,
    objectives: Sequence[Quantity],
    limits: Sequence[Limit],
) -> Standing:
    """The standing that a row has by itself; FRONT when it may be compared with others."""
    values, intervals = known
    if row.is_baseline:
        return Standing.BASELINE
    if row.state in _ENDED_EARLY:
        return _ENDED_EARLY[row.state]
    if row.state != CandidateState.FINISHED:
        return Standing.UNFINISHED
    if any(quantity.name not in values for quantity in objectives):
        return Standing.INCOMPARABLE
    if gate.rejection(limits, values, intervals) is not None:
        return Standing.OUTSIDE
    return Standing.FRONT if gate.doubt(limits, values, intervals) is None else Standing.BORDERLINE


_ENDED_EARLY = {
    CandidateState.REJECTED: Standing.REJECTED,
    CandidateState.STOPPED: Standing.STOPPED,
    CandidateState.FAILED: Standing.FAILED,
}


def _sorted(points: Sequence[FrontPoint], objectives: Sequence[Quantity]) -> list[FrontPoint]:
    by = next((quantity for quantity in objectives if quantity.kind == "cost"), objectives[0])
    sign = -1 if by.maximise else 1
    return sorted(points, key=lambda point: (sign * point.values[by.name], point.row.number))
