"""The chart of the front as it stands in the window, in the report's file, which shares it with the pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

DATA = "JSON.parse(document.getElementById('front-data').textContent)"
TRACES = """
Object.fromEntries(document.getElementById("front-chart").data.filter((trace) => trace.meta.role === "%s")
  .map((trace) => [trace.meta.group, {
    ids: trace.ids.filter((id, i) => trace.x[i] !== null && trace.y[i] !== null), visible: trace.visible,
    x: trace.x, y: trace.y, all: trace.ids, shape: trace.line && trace.line.shape, error: trace.error_y,
  }]))
"""

# Plotly paints a background for each subplot, also for one whose axes it does not show.
BACKGROUNDS = """
(({ _plots, _subplots }) => _subplots.cartesian.map((id) => {
  const { _offset, _length } = _plots[id].yaxis;
  return { top: _offset, bottom: _offset + _length };
}))(document.getElementById("front-chart")._fullLayout)
"""


class Chart:
    def __init__(self, visit: Any) -> None:
        self.visit = visit
        self.page = page = visit.page
        self.data = page.evaluate(DATA)

    def traces(self, role: str) -> dict[str, Any]:
        return self.page.evaluate(TRACES % role)

    def layout(self, expression: str) -> Any:
        return self.page.evaluate(f"document.getElementById('front-chart').layout.{expression}")

    def keys(self, group: str) -> set[str]:
        return {key for key, point in self.data["points"].items() if point["group"] == group}


@pytest.fixture
def chart(new_visit: Callable[..., Any], report_file: Path) -> Chart:
    visit = new_visit()
    page = visit.page
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(report_file.as_uri())
    page.wait_for_selector("#front-chart .main-svg")
    assert requested == [report_file.as_uri()]
    return Chart(visit)


def test_every_point_is_drawn_once_with_the_others_of_its_group(chart: Chart) -> None:
    points, strip = chart.traces("points"), chart.traces("strip")
    for group in points:
        drawn = points[group]["ids"] + strip[group]["ids"]
        known = {key for key in chart.keys(group) if "latency_ms" in chart.data["points"][key]["values"]}
        assert len(drawn) == len(set(drawn))
        assert set(drawn) == known


def test_what_has_no_accuracy_stands_in_the_strip_and_not_in_the_plot(chart: Chart) -> None:
    assert set(chart.traces("strip")["rejected"]["ids"]) == chart.keys("rejected")
    assert chart.traces("points")["rejected"]["ids"] == []
    assert chart.layout("yaxis2")
    chart.page.select_option("#axis-y", "params")
    assert set(chart.traces("points")["rejected"]["ids"]) == chart.keys("rejected")
    assert not chart.layout("yaxis2")


def test_the_line_steps_at_the_worse_of_two_points_on_either_way_round(chart: Chart) -> None:
    line = chart.traces("line")["front"]
    assert set(line["all"]) == chart.keys("front")
    assert line["x"] == sorted(line["x"])
    assert line["shape"] == "hv"
    chart.page.select_option("#axis-x", "accuracy")
    chart.page.select_option("#axis-y", "latency_ms")
    turned = chart.traces("line")["front"]
    assert turned["x"] == sorted(turned["x"])
    assert turned["shape"] == "vh"


def test_no_line_is_drawn_on_axes_that_are_not_the_objectives(chart: Chart) -> None:
    chart.page.select_option("#axis-x", "throughput")
    assert chart.traces("line")["front"]["all"] == []
    assert "The line is left out" in chart.page.locator("#axes-note").inner_text()


def test_what_is_judged_by_its_interval_alone_carries_it(chart: Chart) -> None:
    drawn = chart.traces("points")
    for group, trace in drawn.items():
        assert bool((trace["error"] or {}).get("visible")) == (
            group in ("front", "borderline", "baseline") and bool(trace["ids"])
        )
    key = drawn["front"]["all"][0]
    low, high = chart.data["points"][key]["intervals"]["accuracy"]
    value = chart.data["points"][key]["values"]["accuracy"]
    assert drawn["front"]["error"]["array"][0] == pytest.approx(high - value)
    assert drawn["front"]["error"]["arrayminus"][0] == pytest.approx(value - low)


def test_limits_of_the_shown_axes_are_drawn(chart: Chart) -> None:
    limit = chart.data["axes"]["latency_ms"]["limit"]
    (shape,) = chart.layout("shapes")
    assert (shape["x0"], shape["x1"], shape["yref"]) == (limit, limit, "paper")
    chart.page.select_option("#axis-x", "params")
    assert chart.layout("shapes") == []
    chart.page.select_option("#axis-y", "latency_ms")
    (shape,) = chart.layout("shapes")
    assert (shape["y0"], shape["xref"]) == (limit, "paper")
    chart.page.get_by_label("log vertical axis").check()
    (name,) = chart.layout("annotations")
    assert name["y"] == pytest.approx(math.log10(limit))


@pytest.mark.parametrize("axis", ["accuracy", "flops"])
def test_nothing_is_painted_over_the_plot_or_over_the_strip(chart: Chart, axis: str) -> None:
    chart.page.select_option("#axis-y", axis)
    boxes = chart.page.evaluate(BACKGROUNDS)
    assert len(boxes) == (2 if axis == "accuracy" else 1)
    assert all(a["bottom"] <= b["top"] or b["bottom"] <= a["top"] for a, b in combinations(boxes, 2))


def test_a_single_value_has_room_in_its_own_unit(chart: Chart) -> None:
    boxes = chart.page.locator("fieldset.legend input")
    for box in boxes.all():
        if box.is_visible() and box.input_value() != "baseline":
            box.uncheck()
    chart.page.select_option("#axis-y", "flops")
    chart.page.get_by_label("log vertical axis").uncheck()
    flops = next(p["values"]["flops"] for p in chart.data["points"].values() if p["group"] == "baseline")
    assert chart.layout("yaxis.range") == pytest.approx([flops / 2, 1.5 * flops])


def test_a_group_that_is_left_out_is_neither_in_the_chart_nor_in_the_table(chart: Chart) -> None:
    rows = chart.page.locator("#candidates tbody tr[data-group=stopped]:visible")
    assert rows.count() == 4
    chart.page.get_by_label("Stopped").uncheck()
    assert rows.count() == 0
    assert not chart.traces("points")["stopped"]["visible"]
    chart.page.get_by_label("Stopped").check()
    assert rows.count() == 4


def test_either_axis_can_be_logarithmic(chart: Chart) -> None:
    chart.page.get_by_label("log vertical axis").check()
    assert (chart.layout("xaxis.type"), chart.layout("yaxis.type")) == ("linear", "log")


def test_a_row_under_the_pointer_shows_its_point(chart: Chart) -> None:
    row = chart.page.locator("#candidates tbody tr").first
    row.hover()
    name = row.locator("th").inner_text()
    told = chart.page.locator(".hoverlayer .hovertext").first
    told.wait_for()
    assert name in told.text_content()


def test_a_point_that_is_clicked_is_told_and_marked_in_the_table(chart: Chart) -> None:
    key = sorted(chart.keys("dominated"))[-1]
    chart.page.mouse.click(*chart.visit.place_of(key))
    row = chart.page.locator("tr.chosen")
    assert row.get_attribute("data-key") == key
    told = chart.page.locator("#selection").inner_text()
    assert told.startswith(f"#{key[1:]} ")
    assert row.locator("summary").inner_text() in told
    rings = chart.page.evaluate(
        "document.getElementById('front-chart').data.find((trace) => trace.meta.role === 'chosen').y"
    )
    assert rings == [chart.data["points"][key]["values"]["accuracy"]]


def test_curves_and_colours_follow_the_theme_without_a_network(chart: Chart) -> None:
    assert chart.page.locator("#curves-chart .scatterlayer .trace").count() > 2
    chart.page.select_option("#theme", "dark")
    assert chart.layout("paper_bgcolor") == "#14191f"
