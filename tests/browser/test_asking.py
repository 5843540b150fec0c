"""The buttons of `serve`: a search is held, stopped and deleted from its pages, with the keyboard too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from search.states import SearchState
from search.store.models import Search
from search.store.write import queue


@pytest.fixture
def writing_site(
    filled: Any, start_site: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """The dashboard of `serve` on a database of its own."""
    begin = subprocess.Popen

    def popen(command: list[str], **more: Any) -> Any:
        if command[:3] == [sys.executable, "-m", "search.cli.main"] and command[3] == "dashboard":
            command = [*command[:3], "serve", "--only", "dashboard", *command[4:]]
        return begin(command, **more)

    monkeypatch.setattr(subprocess, "Popen", popen)
    return start_site(filled.path)


def state_of(filled: Any) -> str:
    return filled.store.write(lambda s: s.query(Search).one().state)


def test_a_search_that_waits_is_held_and_taken_out_with_the_keyboard(
    visit: Any, filled: Any, writing_site: Any
) -> None:
    filled.store.write(lambda s: queue.add(s, "night", {}, (), 7, "22:00-07:00"))
    page = visit.open(writing_site)
    row = page.locator("tr[data-key=queue-night]")
    assert "22:00-07:00" in row.inner_text()
    page.get_by_role("button", name="Pause night").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Resume night").wait_for()
    page.wait_for_selector("#told[data-state=done]")
    assert "held back" in page.locator("#told").inner_text()
    assert "paused" in row.inner_text()
    page.get_by_role("button", name="Take night out of the queue").focus()
    page.keyboard.press("Space")
    row.wait_for(state="detached")


def test_a_stop_is_asked_for_in_a_dialog_that_can_be_left(visit: Any, filled: Any, writing_site: Any) -> None:
    filled.store.write(lambda s: setattr(s.query(Search).one(), "state", SearchState.PAUSED))
    page = visit.open(writing_site, "/searches/digits")
    page.get_by_role("button", name="Stop").click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert state_of(filled) == "paused"
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Let running jobs end").click()
    page.wait_for_selector("#told[data-state=done]")
    assert "is stopped" in page.locator("#told").inner_text()
    assert state_of(filled) == "stopped"


def test_a_search_is_deleted_only_after_its_name_was_typed(
    visit: Any, filled: Any, writing_site: Any, tmp_path: Path
) -> None:
    filled.store.write(lambda s: setattr(s.query(Search).one(), "artifacts", str(tmp_path / "none")))
    page = visit.open(writing_site, "/searches/digits")
    page.get_by_role("button", name="Delete").click()
    field = page.get_by_label("Type its name")
    button = page.locator("#delete-dialog button.danger")
    field.fill("digit")
    assert button.is_disabled()
    field.press("Enter")
    assert state_of(filled) == "finished"
    field.fill("digits")
    field.press("Enter")
    page.get_by_text("No search yet.").wait_for(timeout=60_000)
    assert filled.store.write(lambda s: s.query(Search).count()) == 0
    # The page that is left may still have asked for what it shows.
    visit.faults[:] = [fault for fault in visit.faults if "404 (Not Found)" not in fault]


def test_nothing_sticks_out_on_a_narrow_screen(new_visit: Any, filled: Any, writing_site: Any) -> None:
    filled.store.write(lambda s: queue.add(s, "a-search-with-quite-a-long-name", {}, (), 7, "22:00-07:00"))
    visit = new_visit((390, 844))
    for path in ("/", "/searches/digits"):
        page = visit.open(writing_site, path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Delete").click()
    box = page.get_by_role("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
