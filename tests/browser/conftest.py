"""A real browser on a real `paretovit dashboard`, with an eye on everything that a page must not do."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "/usr/bin/chromium"
WIDE = (1280, 900)
PLACE = """
(key) => {
  const chart = document.getElementById("front-chart");
  const shows = (trace) => trace.hovertext && trace.ids.some((id, i) => id === key && trace.x[i] !== null);
  const trace = chart.data.find(shows);
  const place = trace.ids.indexOf(key);
  const layout = chart._fullLayout, box = chart.getBoundingClientRect();
  const yaxis = trace.meta.role === "strip" ? layout.yaxis2 : layout.yaxis;
  return [
    box.left + layout.xaxis._offset + layout.xaxis.d2p(trace.x[place]),
    box.top + yaxis._offset + yaxis.d2p(trace.y[place]),
  ];
}
"""


@dataclass(frozen=True)
class Site:
    """A dashboard that answers. link: with the token."""

    process: subprocess.Popen[str]
    link: str

    @property
    def root(self) -> str:
        return self.link.split("/?")[0]

    @property
    def port(self) -> int:
        return urlsplit(self.link).port or 0

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=20)


def _start(db: Path, port: int = 0) -> Site:
    command = [sys.executable, "-m", "search.cli.main", "dashboard", "--port", str(port), "--db", str(db)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
    line = lines.get(timeout=60)
    assert line.startswith("ready http://127.0.0.1:"), f"{line!r} {process.communicate(timeout=20)[1]}"
    return Site(process, line.split()[1])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for one module: Playwright keeps an event loop running as long as it is there."""
    if not shutil.which(CHROMIUM):
        assert not os.environ.get("CI"), f"CI must test in a browser: install {CHROMIUM}"
        pytest.skip(f"there is no {CHROMIUM}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield started
        started.close()


@dataclass
class Visit:
    """A page, and what it did that it should not have done."""

    page: Page
    faults: list[str] = field(default_factory=list)

    def open(self, site: Site, path: str = "/") -> Page:
        """Goes to a page of the dashboard, with the token at first."""
        if not self.page.context.cookies():
            self.page.goto(site.link)
        if self.page.url != site.root + path:
            self.page.goto(site.root + path)
        return self.page

    def until(self, expression: str) -> None:
        """Waits until a JavaScript expression is true. (Playwright's own way needs eval, which no page allows.)"""
        for _ in range(300):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never true: {expression}")

    def place_of(self, key: str) -> tuple[float, float]:
        """Where a point of the chart is in the window, in pixels."""
        self.page.locator("#front-chart").scroll_into_view_if_needed()
        return tuple(self.page.evaluate(PLACE, key))

    def watch(self) -> None:
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("console", self._console)
        self.page.on("request", self._request)

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: Any) -> None:
        """Errors, and whatever the content security policy refused."""
        if message.type in ("error", "warning") or "Security Policy" in message.text:
            self.faults.append(f"{message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "file") and parts.hostname != "127.0.0.1":
            self.faults.append(f"request: {request.url}")


@pytest.fixture
def new_visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Opens a window of a size and with a preferred theme. Each is checked for faults at the end."""
    visits: list[Visit] = []

    def new(size: tuple[int, int] = WIDE, scheme: str = "light") -> Visit:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, timezone_id="UTC"
        )
        context.set_default_timeout(15_000)
        visit = Visit(context.new_page())
        visit.watch()
        visits.append(visit)
        return visit

    yield new
    for visit in visits:
        visit.page.context.close()
    assert [fault for visit in visits for fault in visit.faults] == []


@pytest.fixture
def visit(new_visit: Callable[..., Visit]) -> Visit:
    return new_visit()


@pytest.fixture(scope="session")
def filled_path(fill_at: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search's database, which no test changes."""
    made = fill_at(tmp_path_factory.mktemp("browser") / "filled.db")
    made.store.close()
    return made.path


@pytest.fixture(scope="session")
def site(filled_path: Path) -> Iterator[Site]:
    """A dashboard on it."""
    started = _start(filled_path)
    yield started
    started.end()


@pytest.fixture
def start_site() -> Iterator[Callable[..., Site]]:
    """Starts a dashboard on a database, on a port if one is given."""
    started: list[Site] = []

    def start(db: Path, port: int = 0) -> Site:
        started.append(_start(db, port))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture(scope="module")
def start_site_for_module() -> Iterator[Callable[..., Site]]:
    """The same, for all tests of a module."""
    started: list[Site] = []

    def start(db: Path) -> Site:
        started.append(_start(db))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture
def running_site(running: Any, start_site: Callable[..., Site]) -> Site:
    """A dashboard on it."""
    return start_site(running.path)


@pytest.fixture(scope="session")
def report_file(filled_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the filled search."""
    from dashboards.report import write_report
    from search.store.session import open_store

    store = open_store(str(filled_path), create=False)
    with store.read() as reader:
        path = write_report(reader, "digits", tmp_path_factory.mktemp("report") / "report.html")
    store.close()
    return path
