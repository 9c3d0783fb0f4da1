"""The app and Chromium, for the benchmarks of what a visitor waits for."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from _report import Table
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import FLAGS

PATIENCE = 120_000
"""Milliseconds."""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, or that of `ISOVIZ_CHROMIUM`."""
    path = os.environ.get("ISOVIZ_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        sys.exit("needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass(frozen=True)
class Line:
    """One figure: its title, its values, and the bar for the median."""

    what: str
    values: list[float]
    unit: str
    bar: float | None = None

    @property
    def missed(self) -> bool:
        return self.bar is not None and statistics.median(self.values) > self.bar

    def cells(self) -> list[str]:
        """For a table."""
        median, worst = statistics.median(self.values), max(self.values)
        bar = "—" if self.bar is None else f"{self.bar:g}"
        return [f"{self.what}, {self.unit}", f"{median:.3g}", f"{worst:.3g}", bar]


def table_of(title: str, lines: list[Line], *notes: str) -> Table:
    """A row for each line."""
    return Table(title, ["", "median", "slowest", "bar"], [line.cells() for line in lines], [*notes])


@contextlib.contextmanager
def opened(browser: Browser, address: str, log: list[dict[str, Any]] | None = None) -> Iterator[Page]:
    """A tab in a separate session; `log` collects the address, transferred bytes and times of its requests."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    if log is not None:
        page.on("requestfinished", lambda request: log.append({"url": request.url, "request": request}))
    page.goto(address, wait_until="commit")
    try:
        yield page
    finally:
        context.close()
