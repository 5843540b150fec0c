"""What a search is and how it stands, in words: headline, figures, captions. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dashboards import front_told, words
from dashboards.figures import palette
from dashboards.figures.curves import CurvesInfo
from dashboards.figures.front import FrontInfo, front_line
from dashboards.figures.points import Point
from dashboards.search_data import SearchData
from search import budget, chance, executions, foreseen, hints, screened
from search.front import Conditions
from search.states import TERMINAL_CANDIDATE, CandidateState, SearchState
from search.store.read.rows import SearchRow
from workers.counting import counted


@dataclass(frozen=True)
class Figure:
    """One figure of a header. moment: UTC seconds, where the value is a time. href: of a page on it."""

    term: str
    value: str
    more: str = ""
    moment: float | None = None
    href: str = ""


@dataclass(frozen=True)
class Progress:
    """How many of the candidates that the search may have have ended. most: None where time ends it. share: of the way
    to its end, by candidates, or else by time; None where neither says. states: those that there are, with counts.
    is_over: whether the search has come to its own end, which may be before `most`."""

    ended: int
    most: int | None
    share: float | None
    states: tuple[tuple[str, int], ...]
    is_over: bool = False

    @property
    def sentence(self) -> str:
        """`2 of 3 candidates have ended.`"""
        if self.most is None or (self.is_over and self.ended >= self.most):
            return f"{counted(self.ended, 'candidate')} {'has' if self.ended == 1 else 'have'} ended."
        if self.is_over:
            ended = counted(self.ended, "candidate")
            return f"{ended} {'has' if self.ended == 1 else 'have'} ended; up to {self.most} were asked for."
        return f"{self.ended} of {self.most} candidates have ended."

    @property
    def text(self) -> str:
        """`3 finished, 1 training`."""
        return ", ".join(f"{count} {state}" for state, count in self.states) or "none yet"


def progress(search: SearchRow, counts: Mapping[CandidateState, int], now: float) -> Progress:
    """counts: candidates by state. now: UTC seconds."""
    ended = sum(count for state, count in counts.items() if state in TERMINAL_CANDIDATE)
    asked = search.config["search"]["max_candidates"]
    most = asked if isinstance(asked, int) else None
    is_over = search.state == SearchState.FINISHED
    share = 1.0 if is_over else _share_of_time(search, now) if most is None else ended / most
    return Progress(
        ended=ended,
        most=most,
        share=None if share is None else min(1.0, max(0.0, share)),
        states=tuple((str(state), counts[state]) for state in CandidateState if counts.get(state)),
        is_over=is_over,
    )


def _share_of_time(search: SearchRow, now: float) -> float | None:
    if search.ended is not None:
        return 1.0
    if search.started is None or search.deadline is None or search.deadline <= search.started:
        return None
    return (now - search.started) / (search.deadline - search.started)


def headline(data: SearchData) -> str:
    return f"Vision-transformer architectures, searched for {objectives(data.objectives)}."


def objectives(names: Sequence[str]) -> str:
    """`accuracy and latency_ms`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def figures(data: SearchData) -> list[Figure]:
    """The header's figures of a report."""
    candidates = [point for point in data.points if point.group != palette.BASELINE]
    on_front = sum(point.group == palette.FRONT for point in candidates)
    finished = sum(point.state == CandidateState.FINISHED for point in candidates)
    seconds = _seconds(data.search, data.written)
    return [
        Figure("State", str(data.search.state), f"for {words.duration(seconds)}" if seconds else ""),
        Figure("Candidates", str(len(candidates)), f"{finished} trained in full, {on_front} on the front"),
        *_best(data),
        *_teacher(data),
        *_executions(data),
        *_left_out(data),
        *_foreseen(data),
        _device(data),
        _images(data),
        *_deadline(data),
    ]


def page_figures(data: SearchData, teacher_href: str) -> list[Figure]:
    """The header's figures of a page, which shows state and counts by itself. teacher_href: of the teacher's page."""
    search, seconds = data.search, _seconds(data.search, data.written)
    took = f"{'took' if search.ended else 'for'} {words.duration(seconds)}" if seconds else ""
    begun = search.started or search.created
    return [
        Figure("Started" if search.started else "Queued", words.moment(begun), took, begun),
        *_best(data),
        *(replace(figure, href=teacher_href) for figure in _teacher(data)),
        *_executions(data),
        *_left_out(data),
        *_foreseen(data),
        _device(data),
        _images(data),
        *_deadline(data),
    ]


def remaining(search: SearchRow, now: float) -> str:
    """How far away the deadline of a search is; empty where that means nothing any more."""
    if search.deadline is None or search.ended is not None:
        return ""
    seconds = search.deadline - now
    return f"in {words.duration(seconds)}" if seconds > 0 else f"{words.duration(-seconds)} ago"


def notice(search: SearchRow) -> str:
    """What the reader should know or do first; empty when all is as it should be."""
    if search.state == SearchState.INTERRUPTED:
        return f"The process that ran this search is gone. Go on with: {hints.command('resume', search.name)}"
    if search.state == SearchState.PAUSED:
        return f"This search is paused. Go on with: {hints.command('resume', search.name)}"
    if search.state == SearchState.DRAINING:
        return "No new work is begun; what runs is brought to its end."
    return ""


def front_words(data: SearchData) -> str:
    number = sum(point.group == palette.FRONT for point in data.points)
    if not number:
        return front_told.why_empty(data.view)
    one = "1 candidate is" if number == 1 else f"{number} candidates are"
    names = objectives(data.objectives)
    return f"{one} on the front of {names}: trained in full, within all limits, and beaten by no other."


def front_caption(front: FrontInfo) -> str:
    names = {
        palette.FRONT: "front points",
        palette.BORDERLINE: "borderline candidates",
        palette.BASELINE: "baselines",
    }
    groups = {point.group for point in front.points}
    barred = [text for key, text in names.items() if key in groups]
    parts = [f"Bars are 95% intervals of {objectives(barred)}."] if barred else []
    if len(front_line(front)) > 1:
        parts.append("The stepped line is what the front attains.")
    if any(point.group in (palette.STOPPED, palette.UNFINISHED) for point in front.points):
        parts.append("Accuracies of stopped and unfinished candidates are those of a shorter training.")
    if any("accuracy" not in point.values for point in front.points):
        parts.append("Below the plot: candidates without an accuracy, which have not been trained.")
    return " ".join(parts)


def curves_caption(curves: CurvesInfo) -> str:
    text = "Validation accuracy of the front and the baselines. Larger markers: rungs, where it is decided who goes on."
    left_out = len(curves.curves) - len(curves.drawn)
    return f"{text} {left_out} further front candidates are in the table only." if left_out else text


def counts(data: SearchData) -> Counter[CandidateState]:
    """Candidates by state, baselines not counted."""
    return Counter(CandidateState(point.state) for point in data.points if point.group != palette.BASELINE)


def _seconds(search: SearchRow, now: float) -> float | None:
    """How long a search took, or has been going on."""
    return None if search.started is None else (search.ended or now) - search.started


def _best(data: SearchData) -> list[Figure]:
    scored = [point for point in data.points if point.group == palette.FRONT and "accuracy" in point.values]
    if not scored:
        return []
    best = max(scored, key=lambda point: point.values["accuracy"])
    low, _ = best.intervals.get("accuracy", (None, None))
    guessing = chance.remark(low, data.search.data)
    more = f"{_with_interval(best)}, {guessing}" if guessing else _with_interval(best)
    return [Figure("Best accuracy", words.number("accuracy", best.values["accuracy"]), more)]


def _executions(data: SearchData) -> list[Figure]:
    """How trainings are executed, where that is known."""
    found = executions.choices(data.search.data)
    ways = sorted({choice.execution.words for choice in found.values()})
    if len(ways) <= 1:
        return [Figure("Trained in", way) for way in ways]
    every = "; ".join(f"{name}: {choice.execution.words}" for name, choice in found.items())
    return [Figure("Trained in", f"{len(ways)} ways", every)]


def _teacher(data: SearchData) -> list[Figure]:
    found = data.teacher
    if found is None:
        return []
    if found["accuracy"] is None:
        return [Figure("Teacher", str(found["name"]), str(found["state"]))]
    bounds = words.interval("accuracy", tuple(found["interval"]))
    remark = f", {found['chance']}" if found["chance"] else ""
    more = f"accuracy {words.number('accuracy', found['accuracy'])}, {bounds} (95%){remark}"
    return [Figure("Teacher", str(found["name"]), more)]


def _left_out(data: SearchData) -> list[Figure]:
    measured = screened.measured_of(point.row for point in data.view.candidates)
    found = screened.summary(data.search.data.get(screened.RECORD), measured)
    if found is None:
        return []
    return [Figure("Left out", screened.proposals(found["left_out"]), screened.words(found))]


def _foreseen(data: SearchData) -> list[Figure]:
    """What was foreseen of the search, with what has become of it."""
    candidates = len(data.view.candidates)
    found = []
    for each in foreseen.of(data.search.data):
        so_far = "became" if data.search.ended is not None else "so far"
        took = words.duration(3600 * data.search.data.get(budget.RECORD, {}).get("hours", 0.0))
        note = f"at {words.moment(each.made)}, from {each.basis}; {so_far}: {candidates} in {took}"
        text = f"{foreseen.between(each.candidates)} candidates in {foreseen.duration(each.hours)}"
        found.append(Figure("Foreseen", text, note))
    return found


def _deadline(data: SearchData) -> list[Figure]:
    deadline = data.search.deadline
    if deadline is None:
        return []
    return [Figure("Deadline", words.moment(deadline), remaining(data.search, data.written), deadline)]


def _with_interval(point: Point) -> str:
    bounds = words.interval("accuracy", point.intervals.get("accuracy"))
    return f"{point.label}, {bounds} (95%)" if bounds else point.label


def _device(data: SearchData) -> Figure:
    conditions = data.view.conditions
    if conditions is None:
        return Figure("Device", data.search.device_id or "–")
    return Figure("Device", conditions.device_name, _conditions(conditions))


def _conditions(conditions: Conditions) -> str:
    threads = "1 thread" if conditions.threads == 1 else f"{conditions.threads} threads"
    cold = ", cold cache" if conditions.cache == "cold" else ""
    return f"{threads}, {conditions.runtime} {conditions.precision}, batch {conditions.batch_size}{cold}"


def _images(data: SearchData) -> Figure:
    sizes: Mapping[str, int] = data.search.data.get("num_images") or {}
    more = ", ".join(f"{count:,} {split}" for split, count in sizes.items())
    return Figure("Images", f"{sum(sizes.values()):,}", more)
