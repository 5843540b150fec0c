"""What `status`, `front` and `show` print for people: plain text in columns, the same on a terminal and in a pipe."""

from __future__ import annotations

import csv as csv_format
import io
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dashboards.words import architecture, duration, interval, number, printable, rebuild
from search import executions, foreseen, hints, screened
from search.states import REMOVED
from search.teacher import words
from workers.counting import counted

if TYPE_CHECKING:
    from search.front import FrontPoint, FrontView

WIDTH = 100
_GOING_ON = ("running", "draining", "paused", "interrupted")


def no_search() -> str:
    return f"The database holds no search yet; start one: {hints.command('run', 'search.yaml')}"


def status(found: Mapping[str, Any]) -> str:
    """The object of `status NAME --json` in a few lines."""
    search = found["search"]
    lines = [
        printable(
            f"{search['name']}: {search['state']}" + (f" ({search['reason']})" if search["reason"] else "")
        )
    ]
    pairs = [
        ("queue", _place(found["queue"]) if found["queue"] else None),
        ("started", search["started"]),
        ("deadline", search["deadline"]),
        ("ended", search["ended"]),
        ("candidates", _counts(found["candidates"])),
        ("baselines", _counts(found["baselines"])),
        ("teacher", printable(words(found["teacher"])) if found["teacher"] else None),
        ("drift", printable(found["drift"]) if found["drift"] else None),
        ("jobs", _counts(found["jobs"])),
        ("epochs", f"{found['epochs']:,} trained"),
        ("best", _best(found["best"], is_over=search["ended"] is not None)),
        *[("trained in", f"{name}: {text}") for name, text in found["executions"].items()],
        *[("foreseen", foreseen.status_words(each)) for each in found["forecasts"]],
        ("screen", screened.words(found["screen"]) if found["screen"] else None),
    ]
    lines += [f"  {name:<11}{value}" for name, value in pairs if value]
    waits = found["queue"] is not None and not found["queue"]["held"]
    if search["state"] in ("interrupted", "paused") and not waits:
        lines.append(printable(f"  go on with: {hints.command('resume', search['name'])}"))
    return "\n".join(lines)


def _place(queue: Mapping[str, Any]) -> str:
    """Where a search is in the queue."""
    words = [f"priority {queue['priority']}", *([f"from {queue['window']}"] if queue["window"] else [])]
    if queue["held"]:
        words.append("held until it is resumed")
    elif queue["before"] is not None:
        words.append(f"{queue['before']} before it")
    return printable(", ".join([*words, *([queue["reason"]] if queue["reason"] else [])]))


def front(view: FrontView, everything: bool) -> str:
    """The front as a table, the baselines below it, then how each quantity was measured."""
    from dashboards import front_told

    names = _shown_quantities(view)
    search = view.search
    epochs = search.config["training"]["epochs"]
    of = counted(len(view.candidates), "candidate")
    title = f"{search.name}: {len(view.front)} on the front of {of} ({search.state})"
    points = [*view.front, *view.baselines]
    if everything:
        points += [point for point in view.candidates if point not in view.front]
    rows = [_front_row(point, names, epochs) for point in points]
    lines = [printable(title), ""]
    found = view.conditions
    if found is not None and found.device_id != search.device_id:
        lines.insert(1, printable(f"Costs are those on {found.device_name}, {found.device_id}."))
    for sentence in (front_told.why_empty(view), front_told.borderline(view)):
        lines += [*textwrap.wrap(printable(sentence), WIDTH), ""] if sentence else []
    lines += [*_table(_front_header(names), rows), ""] if rows else []
    lines += [printable(f"Teacher: {words(view.teacher)}")] if view.teacher else []
    lines += [*_limits(view), *(_how(view.measured_how, names) if rows else [])]
    return "\n".join(lines)


def pick(view: FrontView, points: Sequence[FrontPoint], reason: str, bounded: Sequence[str]) -> str:
    """The first of `points` as the one to take, the others as what comes next. bounded: quantities to show too."""
    name, number = view.search.name, points[0].row.number
    title = f"{name}: take #{number}"
    if view.search.state in _GOING_ON:
        title += f" (the search is {view.search.state}: better ones may come)"
    names = _shown_quantities(view)
    names += [name for name in dict.fromkeys(bounded) if name not in names]
    rows = [
        [
            "take" if point is points[0] else "next",
            *_front_row(point, names, view.search.config["training"]["epochs"]),
        ]
        for point in points
    ]
    lines = [
        printable(title),
        *textwrap.wrap(printable(f"{reason}."), WIDTH, initial_indent="  ", subsequent_indent="  "),
    ]
    lines += ["", *_table(["", *_front_header(names)], rows), "", *_how(view.measured_how, names), ""]
    export = hints.command("export", name, str(number), "--to", "FOLDER")
    return "\n".join([*lines, printable(f"Take it home: {export}")])


def csv(views: Sequence[FrontView], everything: bool) -> str:
    """One line a front point (or candidate and baseline with `everything`), with a header."""
    from search.named_runtimes import asked
    from search.objectives import QUANTITIES

    named = [name for view in views for name in asked(view.search.config) if "@" in name]
    names = list(dict.fromkeys([*QUANTITIES, *named]))
    out = io.StringIO()
    writer = csv_format.writer(out, lineterminator="\n")
    figures = [column for name in names for column in (name, f"{name}_low", f"{name}_high")]
    writer.writerow(
        [
            "search",
            "candidate",
            "name",
            "family",
            "standing",
            "state",
            "epoch",
            *figures,
            "digest",
            "model",
            "args",
        ]
    )
    for view in views:
        for point in (*view.baselines, *view.candidates) if everything else view.front:
            writer.writerow([view.search.name, *_csv_row(point, names)])
    return out.getvalue()


def candidate(found: Mapping[str, Any]) -> str:
    """The object of `show NAME CANDIDATE --json` for reading; JSON holds more."""
    spec = found["spec"]
    what = found["name"] or f"#{found['candidate']}"
    stands = ", ".join(dict.fromkeys([found["state"], found["standing"]]))  # some words are of both
    lines = [f"{found['search']} {what}: {stands}, family {found['family']}"]
    lines += [f"  reason      {found['reason']}"] if found["reason"] else []
    lines += [
        f"  point       {architecture(found['family'], found['point'], spec['model'])}",
        f"  rebuild     {rebuild(spec['model'], spec['args'], found['module'])}",
        f"  digest      {found['digest']}",
    ]
    lines += [f"  began from  {found['weights']}"] if found["weights"] else []
    lines += [f"  teacher     {words(found['teacher'])}"] if found["teacher"] else []
    lines += _execution(found["execution"])
    lines += [f"  predicted   {found['screen']}"] if found["screen"] else []
    lines += ["", "Figures"]
    for name, value in found["values"].items():
        bounds = interval(name, found["intervals"].get(name))
        remark = (
            f"after {found['epoch']} of {counted(found['epochs_in_full'], 'epoch')}"
            if name == "accuracy"
            else ""
        )
        lines.append(
            f"  {name:<16}{number(name, value):>10}  {f'({bounds})' if bounds else '':<18}{remark}".rstrip()
        )
    lines += _section("Accuracy at each rung", _rungs(found["by_rung"]))
    lines += _section("Measurements", [_measured(one) for one in found["measurements"]])
    lines += _section("Attempts", [_attempt(one) for one in found["attempts"]])
    lines += _section("Files", [_file(one) for one in found["artifacts"]])
    text = "\n".join(printable(line) for line in lines)
    return "\n".join([text, "", *_how(found["measured_how"], list(found["measured_how"]))])


def teacher(found: Mapping[str, Any]) -> str:
    """The object of `show NAME teacher --json` for reading."""
    spec = found["spec"]
    lines = [f"{found['search']} teacher: {words(found)}"]
    lines += [f"  reason      {found['reason']}"] if found["reason"] else []
    lines += [
        f"  rebuild     {rebuild(spec['model'], spec['args'], None)}",
        f"  digest      {found['digest']}",
    ]
    lines += _section("Attempts", [_attempt(one) for one in found["attempts"]])
    lines += _section("Files", [_file(one) for one in found["artifacts"]])
    return "\n".join(
        [*(printable(line) for line in lines), "", "In brackets: 95% intervals, on the validation split."]
    )


def _shown_quantities(view: FrontView) -> list[str]:
    names = [quantity.name for quantity in view.objectives]
    return names + [limit.name for limit in view.limits if limit.name not in names]


def _front_header(names: Sequence[str]) -> list[str]:
    return ["", "", "family", *names, "epochs", "architecture"]


def _front_row(point: FrontPoint, names: Sequence[str], epochs: int) -> list[str]:
    row = point.row
    cells = [_figure(name, point.values.get(name), point.intervals.get(name)) for name in names]
    what = row.name or "baseline" if row.is_baseline else f"#{row.number}"
    made_of = architecture(row.family, row.point, row.spec.model)
    reason = f"  [{row.reason}]" if row.reason else ""
    trained = f"{row.epoch} of {epochs}" if row.epoch else "none"
    return [
        what,
        str(point.standing),
        "" if row.is_baseline else row.family,
        *cells,
        trained,
        made_of + reason,
    ]


def _csv_row(point: FrontPoint, names: Sequence[str]) -> list[Any]:
    import json

    row = point.row
    figures: list[Any] = []
    for name in names:
        low, high = point.intervals.get(name, ("", ""))
        figures += [point.values.get(name, ""), low, high]
    args = json.dumps(dict(row.spec.args), sort_keys=True)
    start = [row.number, row.name or "", row.family, str(point.standing), str(row.state), row.epoch]
    return [*start, *figures, row.digest, row.spec.model, args]


def _figure(name: str, value: float | None, bounds: tuple[float, float] | None) -> str:
    text = interval(name, bounds)
    return number(name, value) + (f" ({text})" if text else "")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[printable(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _limits(view: FrontView) -> list[str]:
    from search.objectives import quantity

    lines = []
    for limit in view.limits:
        bound = "at most" if quantity(limit.name).direction == "min" else "at least"
        written = view.search.config["constraints"].get(limit.name)
        relative = f" ({written})" if isinstance(written, str) else ""
        lines.append(printable(f"Limit: {limit.name} {bound} {limit.value:.4g}{relative}"))
    return lines


def _how(measured_how: Mapping[str, str], names: Sequence[str]) -> list[str]:
    lines = ["In brackets: 95% intervals. How it was measured:"]
    for name in names:
        if name in measured_how:
            lines += textwrap.wrap(
                printable(f"{name}: {measured_how[name]}."),
                WIDTH,
                initial_indent="  ",
                subsequent_indent="    ",
            )
    return lines if len(lines) > 1 else []


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _rungs(by_rung: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [
        f"after {counted(int(epochs), 'epoch')}: {number('accuracy', values.get('accuracy'))}"
        for epochs, values in by_rung.items()
    ]


def _measured(found: Mapping[str, Any]) -> str:
    bounds = interval("latency_ms", (found["latency_ms_low"], found["latency_ms_high"]))
    flags = f"; {', '.join(found['flags'])}" if found["flags"] else ""
    cached = f"; taken over, {duration(found['age_seconds'])} old" if found["cached"] else ""
    cold = ", cold cache" if found.get("cache") == "cold" else ""
    return (
        f"{found['time']}  latency_ms {number('latency_ms', found['latency_ms'])} ({bounds}), {found['num_samples']} "
        f"calls at batch {found['batch_size']}, {found['runtime']} {found['precision']}, "
        f"{counted(found['threads'], 'thread')}{cold}, {found['device_name']}{flags}{cached}"
    )


def _execution(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    tried = [f"  {'':<12}{one['execution']}: {executions.trial_words(one)}" for one in found["trials"]]
    return [f"  trained in  {found['words']}", *tried]


def _attempt(found: Mapping[str, Any]) -> str:
    reason = f": {found['reason']}" if found["reason"] else ""
    return (
        f"{found['kind']} job {found['job']}, attempt {found['attempt']}: {found['state']}{reason}, "
        f"{duration(found['seconds'])}"
    )


def _file(found: Mapping[str, Any]) -> str:
    kind = "checkpoint, removed to make room:" if found["kind"] == REMOVED else found["kind"]
    return f"{kind} {found['path']}"


def _counts(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    parts = [f"{count} {state}" for state, count in counts.items() if count]
    return f"{total}: {', '.join(parts)}" if parts else "none"


def _best(best: Mapping[str, Any] | None, is_over: bool) -> str:
    if best is None:
        return "none within the limits" if is_over else "none finished yet"
    figures = [
        f"{name} {_figure(name, value, best['intervals'].get(name))}"
        for name, value in best["values"].items()
    ]
    return f"#{best['candidate']}, {', '.join(figures)}"
