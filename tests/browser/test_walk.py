"""From the list to a candidate and back, as a reader goes: with a pointer, with keys alone, on a telephone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from search.front import front_view
from search.store.read.searches import search_by_name
from search.store.session import open_store

PHONE = (390, 844)
PAGES = (
    "/",
    "/searches/digits",
    "/searches/digits/candidates/9",
    "/searches/digits/candidates/-1",
    "/nowhere",
)


@pytest.fixture
def shown(filled_path: Any) -> dict[str, Any]:
    """What `front digits --json --all` prints."""
    store = open_store(str(filled_path), create=False)
    with store.read() as reader:
        found = front_view(reader, search_by_name(reader, "digits")).to_dict(all=True)
    store.close()
    return found


def test_a_reader_goes_from_the_list_to_a_candidate_and_back(
    visit: Any, site: Any, shown: dict[str, Any]
) -> None:
    page = visit.open(site)
    page.get_by_role("link", name="digits").click()
    assert page.title() == "digits – paretovit"
    best = shown["front"][-1]
    page.wait_for_selector("#front-chart .main-svg")
    place = visit.place_of(f"c{best['candidate']}")
    page.mouse.move(*place)
    tooltip = page.locator(".hoverlayer .hovertext").first
    tooltip.wait_for()
    depth = best["spec"]["args"]["depth"]
    for told in (f"#{best['candidate']}", f"depth={depth}", "12 of 12 epochs", "accuracy", "latency_ms"):
        assert told in tooltip.text_content()
    before = page.evaluate("scrollY")
    page.mouse.click(*place)
    assert page.locator("tr.chosen th").inner_text() == f"#{best['candidate']}"
    assert page.evaluate("scrollY") == before
    page.get_by_role("link", name=f"Open #{best['candidate']}").click()
    assert page.url.endswith(f"/searches/digits/candidates/{best['candidate']}")
    assert f"depth={depth}" in page.locator("main").inner_text()
    page.get_by_role("link", name="Back to the front").click()
    assert page.url.endswith("/searches/digits")


def test_the_chart_and_the_table_hold_the_numbers_of_the_front_command(
    visit: Any, site: Any, shown: dict[str, Any]
) -> None:
    from dashboards import words

    page = visit.open(site, "/searches/digits")
    points = json.loads(page.locator("#page-data").text_content())["points"]
    headings = page.locator("#candidates thead th").all_inner_texts()
    names = ["accuracy", "latency_ms", "latency_ms_p95", "throughput", "peak_memory_mb", "model_mb"]
    labels = [
        "Validation accuracy",
        "Latency, median",
        "95th percentile",
        "Throughput",
        "Peak memory",
        "weights",
    ]
    columns = [next(i for i, text in enumerate(headings) if label in text) for label in labels]
    rows = {
        row["key"]: row["cells"]
        for row in page.locator("#candidates tbody tr").evaluate_all(
            "(rows) => rows.map((row) => ({key: row.dataset.key, cells: Array.from(row.cells, (cell) => "
            "[cell.firstChild ? cell.firstChild.textContent : '', cell.dataset.sort])}))"
        )
    }
    everything = [("c", one) for one in shown["candidates"]] + [("b", one) for one in shown["baselines"]]
    assert len(rows) == len(points) == len(everything)
    for kind, one in everything:
        key = f"{kind}{abs(one['candidate'])}"
        assert points[key]["values"] == one["values"]
        assert points[key]["intervals"] == one["intervals"]
        assert points[key]["group"] == one["standing"]
        for name, column in zip(names, columns, strict=True):
            text, exact = rows[key][column]
            value = one["values"].get(name)
            assert text == words.number(name, value)
            assert (float(exact) if exact else None) == value


def test_keys_alone_reach_a_candidate(visit: Any, site: Any) -> None:
    page = visit.open(site, "/searches/digits")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    inside = "document.activeElement.closest('#candidates')"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(f"{inside} !== null && document.activeElement.textContent === 'Architecture'"):
            break
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").inner_text().startswith("Architecture")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#candidates tbody a')"):
            break
    name = page.evaluate("document.activeElement.textContent")
    page.wait_for_selector(".hoverlayer .hovertext")
    page.keyboard.press("Enter")
    page.wait_for_url("**/candidates/*")
    assert page.locator("h1").inner_text() == name


def test_the_table_sorts_by_every_column_both_ways(visit: Any, site: Any) -> None:
    page = visit.open(site, "/searches/digits")
    header = page.locator("#candidates thead th").nth(4)

    def column() -> list[float]:
        cells = page.locator("#candidates tbody tr td:nth-child(5)").evaluate_all(
            "(cells) => cells.map((cell) => cell.dataset.sort)"
        )
        return [float(cell) for cell in cells if cell]

    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert column() == sorted(column())
    header.get_by_role("button").click()
    assert column() == sorted(column(), reverse=True)


def test_choices_are_there_again_after_a_look_at_a_candidate(visit: Any, site: Any) -> None:
    page = visit.open(site, "/searches/digits")
    page.select_option("#axis-x", "params")
    page.check("#log-x")
    page.get_by_label("Rejected").uncheck()
    page.get_by_role("link", name="#9", exact=True).click()
    page.get_by_role("link", name="Back to the front").click()
    assert page.input_value("#axis-x") == "params"
    assert page.is_checked("#log-x")
    assert not page.get_by_label("Rejected").is_checked()
    assert page.locator("#candidates tbody tr[data-group=rejected]:visible").count() == 0


def test_a_telephone_shows_every_page_without_scrolling_sideways(
    new_visit: Callable[..., Any], site: Any
) -> None:
    visit = new_visit(PHONE)
    for path in PAGES:
        page = visit.open(site, path)
        page.wait_for_selector(".message" if path == "/nowhere" else "#live[data-state]")
        if "digits" in path:
            page.wait_for_selector(".chart .main-svg")
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0], path
    assert ["404" in fault for fault in visit.faults] == [True]
    visit.faults.clear()


def test_the_theme_follows_the_system_until_one_is_chosen(new_visit: Callable[..., Any], site: Any) -> None:
    visit = new_visit(scheme="dark")
    page = visit.open(site, "/searches/digits")
    background = "getComputedStyle(document.body).backgroundColor"
    paper = "document.getElementById('front-chart')._fullLayout.paper_bgcolor"
    visit.until(f"({paper}) === '#14191f'")
    assert page.evaluate(background) == "rgb(20, 25, 31)"
    page.select_option("#theme", "light")
    visit.until(f"({paper}) === '#ffffff'")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.goto(site.root + "/")
    assert page.input_value("#theme") == "light"
    assert page.evaluate(background) == "rgb(255, 255, 255)"


def test_a_candidate_shows_how_it_was_trained_measured_and_tried(visit: Any, site: Any) -> None:
    page = visit.open(site, "/searches/digits/candidates/3")
    page.wait_for_selector("#curves-chart .main-svg")
    text = page.locator("main").inner_text()
    for told in (
        "timm.create_model(",
        "Example CPU",
        "contended",
        "eager-1",
        "checkpoints/3/1/12.safetensors",
        "host 4242",
        "0123",
    ):
        assert told in text
    assert page.locator("#recall tbody tr").count() == 10
    page.locator("#epochs summary").click()
    assert page.locator("#epochs tbody tr").count() == 12
    page.get_by_role("link", name=re.compile("Next")).click()
    assert page.locator("h1").inner_text() == "#4"


def test_the_line_that_builds_a_candidate_again_is_copied(visit: Any, site: Any) -> None:
    page = visit.open(site, "/searches/digits/candidates/3")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#rebuild").inner_text()


def test_an_unknown_search_and_a_missing_token_are_told_on_a_page(visit: Any, site: Any) -> None:
    page = visit.page
    page.goto(f"{site.root}/searches/digits")
    assert "holds the token" in page.locator("main").inner_text()
    assert page.locator("main a").count() == 0
    visit.open(site, "/searches/digit")
    assert "did you mean 'digits'?" in page.locator("main").inner_text()
    page.get_by_role("link", name="All searches").click()
    assert page.locator("h1").inner_text() == "Searches"
    assert [fault.split("status of ")[1][:3] for fault in visit.faults] == ["401", "404"]
    visit.faults.clear()
