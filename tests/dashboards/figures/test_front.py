from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from dashboards import rendering
from dashboards.figures import front, palette
from dashboards.figures.front import Axis
from dashboards.figures.points import Point, hover
from spaces.spec import ArchSpec

AXES = {
    "accuracy": Axis("accuracy", "Accuracy", "max", is_cost=False),
    "latency_ms": Axis("latency_ms", "Latency (ms)", "min", limit=2.0),
    "throughput": Axis("throughput", "Throughput", "max"),
    "params": Axis("params", "Parameters", "min"),
}
OBJECTIVES = ("accuracy", "latency_ms")


def point(number: int, group: str, values: Mapping[str, float], note: str = "", label: str = "") -> Point:
    return Point(
        key=f"c{number}",
        number=number,
        label=label or f"#{number}",
        family="vit",
        architecture="depth 2",
        group=group,
        state="finished",
        values=values,
        intervals={"accuracy": (values["accuracy"] - 0.02, values["accuracy"] + 0.03)}
        if "accuracy" in values
        else {},
        epoch=12 if "accuracy" in values else 0,
        epochs=12,
        note=note,
        spec=ArchSpec("vit"),
    )


POINTS = [
    point(1, palette.FRONT, {"accuracy": 0.90, "latency_ms": 1.0, "throughput": 900}),
    point(2, palette.FRONT, {"accuracy": 0.80, "latency_ms": 0.5, "throughput": 1900}),
    point(3, palette.FRONT, {"accuracy": 0.95, "latency_ms": 1.8, "throughput": 500}),
    point(4, palette.DOMINATED, {"accuracy": 0.85, "latency_ms": 1.5}),
    point(5, palette.REJECTED, {"latency_ms": 3.5}, note="latency_ms 3.5 is above its limit"),
    point(6, palette.UNFINISHED, {}),
    point(7, palette.BASELINE, {"accuracy": 0.88, "latency_ms": 1.2}),
]


ROLES = ("line", "points", "strip", "chosen")


@pytest.fixture
def info() -> front.FrontInfo:
    return front.front_info(POINTS, AXES, OBJECTIVES)


def test_quality_is_drawn_against_cost_whatever_the_order_of_the_objectives(info: front.FrontInfo) -> None:
    assert (info.x, info.y) == ("latency_ms", "accuracy")
    turned = front.front_info(POINTS, AXES, ("latency_ms", "accuracy"))
    assert (turned.x, turned.y) == ("latency_ms", "accuracy")


def test_axes_hold_the_objectives_first_and_no_quantity_that_nobody_has(info: front.FrontInfo) -> None:
    assert list(info.axes) == ["accuracy", "latency_ms", "throughput"]


def test_one_objective_is_drawn_against_the_first_other_quantity() -> None:
    single = front.front_info(POINTS, AXES, ("latency_ms",))
    assert (single.x, single.y) == ("accuracy", "latency_ms")
    assert front.front_line(single) == []


def test_a_search_without_any_point_still_draws() -> None:
    empty = front.front_info([], AXES, OBJECTIVES)
    assert list(empty.axes) == list(OBJECTIVES)
    assert front.front_line(empty) == []
    assert (
        front.draw(empty, palette.THEMES["light"])["layout"]["xaxis"]["title"]["text"]
        == "Latency (ms) – lower is better"
    )


def test_the_line_joins_the_front_alone_from_cheap_to_dear(info: front.FrontInfo) -> None:
    assert [p.number for p in front.front_line(info)] == [2, 1, 3]


def test_three_objectives_have_no_line(info: front.FrontInfo) -> None:
    assert front.front_line(front.front_info(POINTS, AXES, (*OBJECTIVES, "throughput"))) == []


@pytest.mark.parametrize("theme", palette.THEMES.values(), ids=palette.THEMES)
def test_each_group_has_points_and_a_place_in_the_strip(info: front.FrontInfo, theme: palette.Theme) -> None:
    figure = front.draw(info, theme)
    roles = {
        role: [t["meta"]["group"] for t in figure["data"] if t["meta"]["role"] == role] for role in ROLES
    }
    assert roles["points"] == roles["strip"] == list(palette.GROUPS)
    assert roles["line"] == [palette.FRONT]
    assert roles["chosen"] == [""]
    assert [t["meta"]["group"] for t in figure["data"] if t["meta"]["bars"]] == [
        palette.BORDERLINE,
        palette.BASELINE,
        palette.FRONT,
    ]


def test_a_cost_that_spreads_twentyfold_begins_on_a_logarithmic_axis(info: front.FrontInfo) -> None:
    wide = [*POINTS, point(8, palette.DOMINATED, {"accuracy": 0.01, "latency_ms": 10.0})]
    wide_info = front.front_info(wide, AXES, OBJECTIVES)
    assert front.is_wide(wide_info, "latency_ms")
    assert not front.is_wide(wide_info, "accuracy")
    assert not front.is_wide(info, "latency_ms")


def test_the_pointer_shows_architecture_interval_and_reason_as_text() -> None:
    rejected = point(9, palette.REJECTED, {"accuracy": 0.5}, note="<b>no</b> & never", label="<i>x</i>")
    text = hover(rejected, ["accuracy", "latency_ms"])
    assert "depth 2" in text
    assert "accuracy 0.500 (0.480–0.530)" in text
    assert "&lt;b&gt;no&lt;/b&gt; &amp; never" in text
    assert "<i>" not in text


def test_every_group_has_its_own_symbol_and_colour_in_both_themes() -> None:
    groups = palette.GROUPS.values()
    assert len({group.symbol for group in groups}) == len(groups)
    assert len({group.path for group in groups}) == len(groups)
    for theme in palette.THEMES.values():
        assert len({theme.groups[group.key] for group in groups}) == len(groups)


def variables(look: str) -> dict[str, list[str]]:
    """Custom property -> its values in a style sheet, in their order."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"--([a-z]+): (#[0-9a-f]{6});", look):
        found.setdefault(name, []).append(value)
    return found


def test_a_group_has_the_colour_of_its_points_in_legend_table_and_pages() -> None:
    look = rendering.static("look.css")
    found, light, dark = variables(look), palette.THEMES["light"], palette.THEMES["dark"]
    for key in palette.GROUPS:
        assert found[key] == [light.groups[key], dark.groups[key], dark.groups[key]]
        assert f".{key} {{ color: var(--{key}); }}" in look


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", palette.THEMES.values(), ids=palette.THEMES)
def test_colours_stand_out_from_their_background(theme: palette.Theme) -> None:
    for colour in (*theme.groups.values(), *theme.curves, theme.limit):
        assert contrast(colour, theme.background) >= 3
    for text in (theme.ink, theme.muted):
        assert contrast(text, theme.background) >= 4.5
