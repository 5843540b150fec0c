"""`pick`: one model of a front, with the reason. Imports no torch, ray or optuna."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.options import Database, Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from search.front import FrontPoint, FrontView
    from search.objectives import Limit
    from search.pick import Option, Picked, Wish

UNDER, AT_LEAST = "--under", "--at-least"


def pick(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The search.")],
    under: Annotated[
        list[str] | None,
        typer.Option(
            UNDER, metavar="QUANTITY=NUMBER", help="At most so much, as latency_ms=2; may be repeated."
        ),
    ] = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            AT_LEAST, metavar="QUANTITY=NUMBER", help="At least so much, as accuracy=0.9; may be repeated."
        ),
    ] = None,
    knee: Annotated[bool, typer.Option("--knee", help="Where the front bends most.")] = False,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="A=2,B=1", help="By how much each objective matters to you."),
    ] = None,
    as_json: Json = False,
    db: Database = None,
) -> None:
    """Pick one model of the front: by bounds, by weights, or where the front bends most."""
    from search.cli import look_text
    from search.cli.reading import print_json, reading
    from search.errors import NoFeasibleCandidate
    from search.front import Standing, front_view
    from search.pick import NothingFits
    from search.pick import pick as choose
    from search.store.read.searches import search_by_name

    with reading(db) as reader:
        view = front_view(reader, search_by_name(reader, name))
    wish = _wish(view, under or [], at_least or [], knee, weights)
    points = [p for p in view.candidates if p.standing in (Standing.FRONT, Standing.DOMINATED)]
    baselines = [_option(view, point) for point in view.baselines if point.row.state == "finished"]
    try:
        picked = choose([_option(view, point) for point in points], view.objectives, wish, baselines)
    except NothingFits as error:
        raise NoFeasibleCandidate(f"search {name}: {error}") from None
    if as_json:
        print_json(_dict(view, points, picked))
    else:
        shown = [points[picked.chosen], *(points[i] for i in picked.following)]
        typer.echo(look_text.pick(view, shown, picked.reason, [bound.name for bound in wish.bounds]))


def _option(view: FrontView, point: FrontPoint) -> Option:
    from search import chance
    from search.pick import Option

    label = str(point.row.name) if point.row.is_baseline else f"#{point.row.number}"
    low, _ = point.intervals.get("accuracy", (None, None))
    return Option(label, point.values, point.intervals, chance.remark(low, view.search.data))


def _wish(view: FrontView, under: list[str], at_least: list[str], knee: bool, weights: str | None) -> Wish:
    """Raises UsageError naming the option, for what is no bound, no weight, said twice, or contradicts itself."""
    from search.errors import UsageError
    from search.pick import Wish, contradiction, known_weights

    if knee and weights is not None:
        raise UsageError("--knee and --weights: give one of them")
    bounds = (*_bounds(view, UNDER, under), *_bounds(view, AT_LEAST, at_least))
    if (pair := contradiction(bounds)) is not None:
        upper, lower = (f"{bound.name}={bound.value:.10g}" for bound in pair)
        raise UsageError(f"{UNDER} {upper} and {AT_LEAST} {lower} contradict each other; drop or change one")
    if weights is None:
        return Wish(bounds, "knee" if knee else None)
    try:
        return Wish(bounds, known_weights(_numbers(weights.split(",")), view.objectives))
    except ValueError as error:
        raise UsageError(f"--weights: {error}") from None


def _bounds(view: FrontView, option: str, texts: Sequence[str]) -> list[Limit]:
    from search.errors import UsageError
    from search.objectives import Limit, parse_constraints, resolve

    baselines = {str(point.row.name): point.values for point in view.baselines}
    try:
        limits = resolve(parse_constraints(_assignments(texts)), baselines)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
    return [Limit(limit.name, limit.value, upper=option == UNDER) for limit in limits]


def _assignments(texts: Sequence[str]) -> dict[str, str]:
    """`A=B` as pairs. Raises ValueError for anything else, and for a name that comes twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = (part.strip() for part in text.partition("="))
        if not (separator and name and value):
            raise ValueError(f"{text[:60]!r} is not QUANTITY=NUMBER, such as latency_ms=2")
        if name in found:
            raise ValueError(f"{name!r} is there twice")
        found[name] = value
    return found


def _numbers(texts: Sequence[str]) -> dict[str, float]:
    found = {}
    for name, value in _assignments(texts).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise ValueError(f"{name}: {value[:60]!r} is no number") from None
    return found


def _dict(view: FrontView, points: Sequence[FrontPoint], picked: Picked) -> dict[str, Any]:
    chosen = points[picked.chosen]
    return {
        "search": view.search.name,
        "state": str(view.search.state),
        "candidate": chosen.row.number,
        "reason": picked.reason,
        "values": dict(chosen.values),
        "intervals": {name: list(bounds) for name, bounds in chosen.intervals.items()},
        "next": [
            {"candidate": points[i].row.number, "values": dict(points[i].values)} for i in picked.following
        ],
    }
