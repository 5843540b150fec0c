"""Whatever stands in a database stays text: a corpus of payloads wherever a page shows something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dashboards.words import for_pages

RAN = "window.ran = (window.ran || 0) + 1"
PAYLOADS = (
    f"<script>{RAN}</script>",
    f'"><img src=x onerror="{RAN}">',
    f"'><svg onload='{RAN}'>",
    f"</script><script>{RAN}</script>",
    f"--><script>{RAN}</script><!--",
    f"javascript:{RAN}",
    f'<a href="javascript:{RAN}">press</a>',
    f'<iframe srcdoc="<script>parent.{RAN}</script>">',
    "<link rel=stylesheet href=//attacker.example/x.css><img src=//attacker.example/x.png>",
    "<meta http-equiv=refresh content='0;url=//attacker.example/'><base href=//attacker.example/>",
    "{{7*7}} ${7*7} {% raw %} #{7*7} %{x} %{customdata[0]}",
    "&lt;b&gt; &#60;script&#62; &amp;amp; \\u003cscript\\u003e",
    "\u202eevil\u2066 \u200f\u00a0 \u0000 \ud7ff \N{LINE SEPARATOR} new\nline\ttab".replace(
        "\u0000", "\ufffd"
    ),
    "</title></style></textarea></template></noscript><plaintext>",
    "x' || (SELECT 1) -- %s %(a)s {0} %n",
)
HANDLERS = """
Array.from(document.querySelectorAll("*")).flatMap((one) => one.getAttributeNames())
  .filter((name) => name.startsWith("on"))
"""
LINKS = "Array.from(document.querySelectorAll('[href]'), (one) => one.href || one.getAttribute('href'))"
NAME = f'"><img src=x onerror={RAN.replace(" ", "")}>?a=b#c&d%41 {{{{7*7}}}}'


def payload(number: int) -> str:
    return PAYLOADS[abs(number) % len(PAYLOADS)]


@pytest.fixture(scope="module")
def hostile_path(fill_at: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search of a hostile name, each of whose candidates and baselines holds another payload; and one search more for
    every payload, which has it as its name."""
    made = fill_at(tmp_path_factory.mktemp("hostile") / "hostile.db", name=NAME, hostile=PAYLOADS[0])
    made.store.write(_spread)
    made.store.close()
    return made.path


def _spread(session: Any) -> None:
    from search.store.models import Artifact, Attempt, Candidate, EvaluationRow, Event, MeasurementRow, Search
    from search.store.write import searches

    found = session.query(Search).filter(Search.name == NAME).one()
    found.data = found.data | {"class_names": list(PAYLOADS)}
    found.config = found.config | {"artifacts": PAYLOADS[3], "constraints": {"latency_ms": 0.9}}
    found.reason, found.artifacts = PAYLOADS[1], f"/nowhere/{PAYLOADS[2]}"
    for row in session.query(Candidate):
        text = payload(row.number)
        row.family, row.reason = text, f"reason {text}"
        row.spec = row.spec | {"model": f"model {text}", "args": {"depth": 2, text: text}}
        row.point = {"family": text, f"{text}.{text}": text, "depth": [text, text]}
        row.name = None if row.number > 0 else f"name {text}"
        for one in session.query(Artifact).filter(Artifact.candidate_id == row.id):
            one.path = f"path {text}"
        for one in session.query(EvaluationRow).filter(EvaluationRow.candidate_id == row.id):
            one.figures = one.figures | {"class_names": list(PAYLOADS[:10])}
        for one in session.query(MeasurementRow).filter(MeasurementRow.candidate_id == row.id):
            one.figures = one.figures | {"flags": [text]}
    for place, row in enumerate(session.query(Attempt)):
        text = payload(place)
        row.host, row.reason, row.detail = f"host {text}", f"why {text}", f"trace {text}"
    for place, text in enumerate(PAYLOADS):
        session.add(Event(search_id=found.id, time=1.0, kind=f"kind {text}"[:40], candidate=place, text=text))
    for text in PAYLOADS:
        searches.create(session, text, found.config, found.data, found.artifacts, None)


@pytest.fixture(scope="module")
def hostile_site(hostile_path: Path, start_site_for_module: Any) -> Any:
    return start_site_for_module(hostile_path)


@pytest.fixture
def page(visit: Any) -> Iterator[Any]:
    """A page that is checked at the end."""
    yield visit.page
    check(visit.page)


def check(page: Any) -> None:
    """Nothing of a payload may have run, been asked for, or become an element."""
    assert page.evaluate("window.ran") is None
    elements = "iframe, base, object, embed, plaintext, meta[http-equiv=refresh], main img"
    assert page.locator(elements).count() == 0
    assert page.evaluate(HANDLERS) == []
    own = page.evaluate("location.origin")
    assert [link for link in page.evaluate(LINKS) if not str(link).startswith(own)] == []


def shown(page: Any) -> str:
    """Everything that is text on the page, in what is folded up too."""
    return page.evaluate("document.querySelector('main').textContent")


def test_every_payload_is_text_in_the_list(visit: Any, page: Any, hostile_site: Any) -> None:
    visit.open(hostile_site)
    headings = page.locator("main h2").evaluate_all("(all) => all.map((one) => one.textContent)")
    assert headings == [*map(for_pages, reversed(PAYLOADS)), NAME]


def test_every_search_is_found_under_its_name(visit: Any, page: Any, hostile_site: Any) -> None:
    visit.open(hostile_site)
    for text in (PAYLOADS[1], PAYLOADS[3], PAYLOADS[5], PAYLOADS[10], PAYLOADS[11]):
        link = page.locator("main h2 a").nth(len(PAYLOADS) - 1 - PAYLOADS.index(text))
        address = link.get_attribute("href")
        assert address == "/searches/" + quote(text, safe="")
        link.click()
        assert page.locator("h1").evaluate("(one) => one.textContent") == text
        page.goto(hostile_site.root)


def test_every_payload_is_text_on_the_front(visit: Any, page: Any, hostile_site: Any) -> None:
    visit.open(hostile_site, "/searches/" + quote(NAME, safe=""))
    page.wait_for_selector("#front-chart .main-svg")
    assert page.title() == f"{NAME} – paretovit"
    text = shown(page)
    for one in PAYLOADS:
        assert for_pages(one) in text
    rows = page.locator("#candidates tbody tr")
    for place in range(rows.count()):
        rows.nth(place).locator("th").hover()
    for row in page.locator("#front-chart .hoverlayer").all():
        assert row.locator("a, img, script").count() == 0


def test_the_pointer_shows_a_payload_as_text(visit: Any, page: Any, hostile_site: Any) -> None:
    visit.open(hostile_site, "/searches/" + quote(NAME, safe=""))
    page.wait_for_selector("#front-chart .main-svg")
    for number in (1, 2, 4, 6, 9, 10, 11):
        assert f"#{number} · {payload(number)} · " in _hovered(page, number)


def _hovered(page: Any, number: int) -> str:
    page.locator(f"tr[data-key=c{number}] th").hover()
    told = page.locator(".hoverlayer .hovertext", has_text=f"#{number} ")
    told.first.wait_for()
    return told.first.text_content()


def test_every_payload_is_text_on_the_page_of_a_candidate(visit: Any, page: Any, hostile_site: Any) -> None:
    for number in (-1, *range(1, len(PAYLOADS) + 1)):
        visit.open(hostile_site, f"/searches/{quote(NAME, safe='')}/candidates/{number}")
        page.wait_for_selector("#live[data-state]")
        text, told = shown(page), for_pages(payload(number))
        assert f"reason {told}" in text
        assert f"model {told}" in text
        heading = page.locator("h1").evaluate("(one) => one.textContent")
        assert heading == (f"#{number}" if number > 0 else f"name {told}")
        check(page)


def test_an_address_that_holds_a_payload_is_told_as_text(visit: Any, page: Any, hostile_site: Any) -> None:
    visit.open(hostile_site)
    for text in (*PAYLOADS[:4], PAYLOADS[10]):
        page.goto(f"{hostile_site.root}/searches/no{quote(text, safe='')}")
        assert "in the database" in shown(page)
    visit.faults[:] = [fault for fault in visit.faults if "404" not in fault]


def test_the_report_of_a_hostile_search_runs_nothing(visit: Any, hostile_path: Path, tmp_path: Path) -> None:
    from dashboards.report import write_report
    from search.store.session import open_store

    store = open_store(str(hostile_path), create=False)
    with store.read() as reader:
        path = write_report(reader, NAME, tmp_path / "report.html")
    store.close()
    visit.page.goto(path.as_uri())
    visit.page.wait_for_selector("#front-chart .main-svg")
    text = shown(visit.page)
    for one in PAYLOADS:
        assert for_pages(one) in text
    assert visit.page.evaluate("window.ran") is None
