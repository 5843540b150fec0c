from __future__ import annotations

import pytest

from dashboards.figures import curves, palette
from dashboards.figures.curves import Score
from dashboards.figures.points import Point
from spaces.spec import ArchSpec


def point(number: int, group: str, latency: float, label: str = "") -> Point:
    return Point(
        key=f"c{number}",
        number=number,
        label=label or f"#{number}",
        family="vit",
        architecture="depth 2",
        group=group,
        state="finished",
        values={"latency_ms": latency},
        intervals={},
        epoch=12,
        epochs=12,
        note="",
        spec=ArchSpec("vit"),
    )


def scores(*accuracies: float) -> list[Score]:
    return [Score(epoch, value, value - 0.1, value + 0.1) for epoch, value in enumerate(accuracies, start=1)]


def info(points: list[Point], rungs: tuple[int, ...] = (2, 4)) -> curves.CurvesInfo:
    return curves.curves_info(
        points, {p.key: scores(0.2, 0.4, 0.6, 0.8) for p in points}, rungs, "latency_ms"
    )


def test_curves_are_those_of_the_front_by_cost_and_then_of_the_baselines() -> None:
    points = [
        point(1, palette.BASELINE, 0.1),
        point(2, palette.FRONT, 2.0),
        point(3, palette.DOMINATED, 1.0),
        point(4, palette.FRONT, 1.0),
    ]
    assert [curve.point.number for curve in info(points).curves] == [4, 2, 1]


def test_what_was_never_trained_has_no_curve() -> None:
    assert curves.curves_info([point(1, palette.FRONT, 1.0)], {}, (2,), "latency_ms").curves == ()


def test_rungs_are_marked_on_the_axis_and_on_every_curve() -> None:
    figure = curves.draw(info([point(1, palette.FRONT, 1.0)]), palette.THEMES["dark"])
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [2, 4]
    sizes = figure["data"][0]["marker"]["size"]
    assert sizes[1] == sizes[3] > sizes[0] == sizes[2]


def test_a_long_front_keeps_its_ends_and_all_baselines_in_the_figure() -> None:
    points = [point(number, palette.FRONT, float(number)) for number in range(1, 31)]
    many = info([*points, point(99, palette.BASELINE, 1.0)])
    drawn = [curve.point.number for curve in many.drawn]
    assert len(drawn) == curves.MOST_CURVES == len(set(drawn))
    assert (drawn[0], drawn[-2], drawn[-1]) == (1, 30, 99)
    assert len(many.curves) == 31


def test_the_table_has_a_dash_where_a_rung_was_not_reached() -> None:
    (curve,) = info([point(1, palette.FRONT, 1.0)]).curves
    assert curves.at_rungs(curve, (2, 12)) == ["0.400 (0.300–0.500)", "–"]


def test_names_are_text_in_the_legend_and_in_the_hover() -> None:
    hostile = point(1, palette.FRONT, 1.0, label="<a href=x>&%{x}")
    trace = curves.draw(info([hostile]), palette.THEMES["light"])["data"][0]
    assert trace["name"] == "&lt;a href=x&gt;&amp;%{x} vit"
    assert trace["hovertemplate"] == "%{hovertext}<extra></extra>"


@pytest.mark.parametrize("accuracies", [[0.1, 0.1], [0.0], [1.0, 1.0], [0.2, 0.9]])
def test_an_axis_of_accuracies_shows_them_all_and_little_that_cannot_be(accuracies: list[float]) -> None:
    found = curves.accuracy_range(accuracies)
    assert found is not None
    low, high = found
    assert -0.03 < low < min(accuracies)
    assert max(accuracies) < high < 1.03
    assert high - low <= 1.15 * (max(accuracies) - min(accuracies)) + 0.05
