"""Pages that are open while a search runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

LIVE = "document.getElementById('live').dataset.state === 'live'"
SAME = "window.isTheSamePage"
RANGE = "document.getElementById('front-chart')._fullLayout.xaxis.range"


def watched(visit: Any, site: Any, path: str) -> Any:
    """The open page, once its stream has begun; marked, so that loading it again would show."""
    page = visit.open(site, path)
    visit.until(LIVE)
    page.evaluate(f"{SAME} = true")
    return page


def test_a_point_arrives_and_the_reader_loses_nothing(visit: Any, running: Any, running_site: Any) -> None:
    page = watched(visit, running_site, "/searches/digits")
    page.select_option("#axis-x", "throughput")
    page.get_by_label("Rejected").uncheck()
    page.locator("#candidates thead th").nth(0).get_by_role("button").click()
    page.locator("tr[data-key=c9] summary").click()
    box = page.locator("#front-chart .nsewdrag").first
    box.scroll_into_view_if_needed()
    area = box.bounding_box()
    page.mouse.move(area["x"] + 100, area["y"] + 50)
    page.mouse.down()
    page.mouse.move(area["x"] + 400, area["y"] + 250, steps=5)
    page.mouse.up()
    visit.until("document.getElementById('front-chart').layout.xaxis.autorange === false")
    before = page.evaluate(RANGE)
    page.locator("tr[data-key=c9] th a").focus()

    running.add(23, "finished", 40)

    page.wait_for_selector("tr[data-key=c23]")
    assert "#23: " in page.locator("#news").inner_text()
    assert page.evaluate(
        "document.getElementById('front-chart').data.some((trace) => (trace.ids || []).includes('c23'))"
    )
    assert "of 22 candidates have ended" in page.locator("#standing").inner_text()
    assert page.evaluate(SAME)
    assert page.evaluate("document.activeElement.closest('tr').dataset.key") == "c9"
    assert page.evaluate(RANGE) == before
    assert page.input_value("#axis-x") == "throughput"
    assert page.locator("tr[data-group=rejected]:visible").count() == 0
    assert page.locator("tr[data-key=c9] details").get_attribute("open") is not None
    order = page.locator("#candidates tbody tr").evaluate_all(
        "(rows) => rows.map((row) => row.cells[0].dataset.sort)"
    )
    assert [int(number) for number in order] == sorted(int(number) for number in order)


def test_a_row_that_changes_keeps_the_focus(visit: Any, running: Any, running_site: Any) -> None:
    page = watched(visit, running_site, "/searches/digits")
    page.locator("tr[data-key=c19] th a").focus()
    fail(running, 19, "its loss is not finite")
    page.wait_for_selector("tr[data-key=c19][data-group=failed]")
    assert page.evaluate("document.activeElement.closest('tr').dataset.key") == "c19"
    assert "#19: failed" in page.locator("#news").inner_text()


def test_the_first_figures_bring_their_columns_and_axes(visit: Any, running: Any, running_site: Any) -> None:
    from sqlalchemy import delete

    from search.store.models import Candidate, MeasurementRow

    running.store.write(
        lambda session: [session.execute(delete(table)) for table in (MeasurementRow, Candidate)]
    )
    page = watched(visit, running_site, "/searches/digits")
    headings = page.locator("#candidates thead th")
    assert headings.count() == 7
    assert "there is no front" in page.locator("#front_words").inner_text()
    assert "Nothing has both figures" in page.locator("#front-chart").text_content()
    headings.nth(5).get_by_role("button").click()
    running.add(1, "finished", 20)
    page.wait_for_selector("tr[data-key=c1]")
    assert headings.count() == page.locator("tr[data-key=c1] > *").count() == 13
    assert page.locator("#candidates th[aria-sort]").inner_text().startswith("Architecture")
    assert page.locator("#axis-x option").count() == 8
    assert page.input_value("#axis-x") == "latency_ms"
    assert "1 candidate is on the front" in page.locator("#front_words").inner_text()
    page.wait_for_selector("#front-chart .scatterlayer .point")


def test_a_candidate_that_ends_says_so_on_its_page(visit: Any, running: Any, running_site: Any) -> None:
    page = watched(visit, running_site, "/searches/digits/candidates/19")
    assert page.locator("#verdict .state").inner_text() == "waiting"
    page.get_by_role("link", name="Next").focus()
    fail(running, 19, "its loss is not finite")
    page.wait_for_selector("#verdict .state.failed")
    assert "its loss is not finite" in page.locator("#verdict").inner_text()
    assert page.locator("#news").inner_text() == "#19: failed, failed"
    assert page.evaluate("document.activeElement.textContent").startswith("Next")
    assert page.evaluate(SAME)


def test_a_search_that_begins_comes_into_the_list(
    visit: Any, running: Any, running_site: Any, fill_at: Any
) -> None:
    page = watched(visit, running_site, "/")
    fill_at(running.path, name="second").store.close()
    page.get_by_role("link", name="second").wait_for()
    assert page.locator("#news").inner_text() == "second: finished"
    assert page.locator(".searches h2").all_inner_texts() == ["second", "digits"]
    assert page.evaluate(SAME)


def test_a_dashboard_without_a_database_says_how_to_begin_and_waits(
    visit: Any, tmp_path: Path, start_site: Any, fill_at: Any
) -> None:
    path = tmp_path / "later.db"
    page = watched(visit, start_site(path), "/")
    text = page.locator("main").inner_text()
    assert "No database yet." in text
    assert str(path) in text
    assert "paretovit run search.yaml" in text
    fill_at(path).store.close()
    page.get_by_role("link", name="digits").wait_for()
    assert page.evaluate(SAME)


def test_a_search_that_has_ended_is_not_called_live(visit: Any, site: Any) -> None:
    visit.open(site, "/searches/digits")
    visit.until("document.getElementById('live').textContent === 'Ended'")


def test_a_dashboard_that_ends_and_one_with_a_new_token_are_told(
    visit: Any, start_site: Any, running: Any
) -> None:
    first = start_site(running.path)
    page = watched(visit, first, "/searches/digits")
    first.end()
    visit.until("document.getElementById('live').textContent === 'Reconnecting'")
    start_site(running.path, port=first.port)
    visit.until("document.getElementById('live').textContent.startsWith('Signed out')")
    assert page.evaluate(SAME)
    assert {fault.split(":")[1] for fault in visit.faults} == {" Failed to load resource"}
    visit.faults.clear()


def test_nothing_is_asked_for_while_nobody_looks(visit: Any, running: Any, running_site: Any) -> None:
    page = watched(visit, running_site, "/searches/digits")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    hide(page, True)
    running.add(24, "finished", 30)
    page.wait_for_timeout(2500)
    assert asked == []
    hide(page, False)
    visit.until(
        f"{LIVE} && performance.getEntriesByType('resource').some((one) => one.name.includes('/data'))"
    )


def hide(page: Any, hidden: bool) -> None:
    page.evaluate(
        "(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


def fail(running: Any, number: int, reason: str) -> None:
    from search.states import CandidateState
    from search.store.read.searches import search_by_name
    from search.store.write import candidates

    def write(session: Any) -> None:
        found = search_by_name(session, running.name)
        candidates.set_state(candidates.by_number(session, found.id, number), CandidateState.FAILED, reason)

    running.store.write(write)
