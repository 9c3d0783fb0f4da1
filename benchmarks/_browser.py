"""The app and Chromium, for the benchmarks of what a visitor waits for."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _report import Table
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import FLAGS
from tests.ports import answers, free_port
from tests.runs.observing import until

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


BARE = 'import streamlit as st\n\nst.title("Bare")\nst.button("Nothing")\n'
"""A Streamlit page with nothing but a title."""


@contextlib.contextmanager
def bare(source: str = BARE) -> Iterator[str]:
    """A Streamlit page of this source; its address."""
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        script = Path(folder) / "bare.py"
        script.write_text(source, encoding="utf-8")
        options: dict[str, Any] = {"headless": "true", "port": port, "address": "127.0.0.1", "fileWatcherType": "none"}
        flags = [f"--server.{name}={value}" for name, value in options.items()]
        command = [sys.executable, "-m", "streamlit", "run", str(script), *flags, "--browser.gatherUsageStats=false"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            address = f"http://127.0.0.1:{port}"
            until(lambda: answers(address))
            yield address
        finally:
            process.terminate()
            process.wait(timeout=20)
