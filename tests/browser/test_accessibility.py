"""axe finds nothing serious on any page, in either theme."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

PAGES = ("/", "/searches/digits", "/searches/digits/candidates/3", "/searches/nowhere")


def findings(page: Any) -> list[str]:
    """Everything that axe calls serious or critical, with where it stands."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node['html'][:120]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def findings_in_both_themes(page: Any) -> dict[str, list[str]]:
    found = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)  # the charts are drawn again
        found[scheme] = findings(page)
    return found


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_on_a_page(visit: Any, site: Any, path: str) -> None:
    page = visit.open(site, path)
    if "digits" in path:
        page.wait_for_selector("#curves-chart .main-svg")
        for summary in page.locator("section > details > summary, section > div > details > summary").all():
            summary.click()
    assert findings_in_both_themes(page) == {"light": [], "dark": []}
    if "nowhere" in path:
        visit.faults.clear()  # the browser's own word for 404


def test_axe_finds_nothing_serious_in_the_report(visit: Any, report_file: Path) -> None:
    visit.page.goto(report_file.as_uri())
    visit.page.wait_for_selector("#curves-chart .main-svg")
    assert findings_in_both_themes(visit.page) == {"light": [], "dark": []}


def test_axe_would_find_what_is_wrong(visit: Any, site: Any) -> None:
    page = visit.open(site)
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<input><img src=\"/favicon.ico\">')"
    )
    assert {finding.split(":")[0] for finding in findings(page)} >= {"image-alt", "label"}
    visit.faults.clear()  # there is no such image


OVERFLOW = "(one) => one.closest('.scroll').scrollWidth - one.closest('.scroll').clientWidth"


def test_the_figures_of_a_candidate_fit_a_phone_and_stay_a_table(new_visit: Any, site: Any) -> None:
    page = new_visit((390, 844)).open(site, "/searches/digits/candidates/3")
    table = page.locator("table.quantities")
    assert table.evaluate(OVERFLOW) <= 0
    assert page.get_by_role("region", name="Table of figures").get_by_role("row").count() > 5
    assert page.get_by_role("columnheader", name="How it was taken").count() == 1
    assert findings(page) == []


def test_the_table_of_candidates_fits_a_usual_window(new_visit: Any, site: Any) -> None:
    page = new_visit((1440, 1000)).open(site, "/searches/digits")
    assert page.locator("#candidates").evaluate(OVERFLOW) <= 0
