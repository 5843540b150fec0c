"""axe finds nothing serious on any page, in either theme."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_on_a_page(
    new_visit: Callable[..., Any], site: Any, path: str, scheme: str
) -> None:
    visit = new_visit(scheme=scheme)
    page = visit.open(site, path)
    if "digits" in path:
        page.wait_for_selector("#curves-chart .main-svg")
        for summary in page.locator("section > details > summary, section > div > details > summary").all():
            summary.click()
    assert findings(page) == []
    if "nowhere" in path:
        visit.faults.clear()  # the browser's own word for 404


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_report(
    new_visit: Callable[..., Any], report_file: Path, scheme: str
) -> None:
    page = new_visit(scheme=scheme).page
    page.goto(report_file.as_uri())
    page.wait_for_selector("#curves-chart .main-svg")
    assert findings(page) == []
