"""A real server and a real Chromium: `serve()` starts the app on a free port, `open_tab(url)` opens it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from isoviz.exploring import measuring, results
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.home import home
from isoviz.models import sources
from isoviz.runs.store import Store
from tests.dashboard.reading import OPEN
from tests.missing import missing
from tests.ports import free_port

Value = TypeVar("Value")
ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
EVERY_SECTION = "&".join(f"{name}=true" for name in OPEN)
"""For an address of Explore."""
PATIENCE = 60_000
"""Milliseconds that a page may take before a test gives up: a machine busy with other tests is slow."""

TABS = pytest.StashKey[list[Page]]()
"""The tabs that a test has opened."""

expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # waits have separate limits and name what they waited for
            item.add_marker(pytest.mark.timeout(1500))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium. Without one these tests are skipped, except in CI, where that would hide something."""
    path = os.environ.get("ISOVIZ_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing("no chromium found (set ISOVIZ_CHROMIUM to its path, or install it)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Server:
    """A running app and the store it reads."""

    url: str
    store: Store
    process: subprocess.Popen[bytes]

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def start(folder: Path, *, runner: str = "off", base: str = "", **settings: str) -> Server:
    """The app on a free port with `folder` as ISOVIZ_HOME, started as `python -m isoviz app` starts it.

    Every visitor is the operator, without a link, unless `settings` (environment variables) say otherwise.
    """
    port = free_port()
    store = Store(folder)
    log = folder / f"server-{port}.log"
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/server/main.py", f"--server.port={port}"]
    environment = {**os.environ, "ISOVIZ_HOME": str(folder), "ISOVIZ_RUNNER": runner, "HF_HUB_OFFLINE": "1"}
    spares = {"ISOVIZ_SPARES": "off"} if runner == "off" else {}  # each takes ten seconds of a processor
    environment |= {"ISOVIZ_NO_TOKEN": "1", **spares, **settings}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, f"--server.baseUrlPath={base}"] if base else command,
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}" + (f"/{base}" if base else "")
    server = Server(url, store, process)
    try:
        _wait(f"{url}/_stcore/health", process, log)
    except BaseException:
        server.end()
        raise
    return server


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """`serve(runner="off", base="")`: a fresh server on this test's own ISOVIZ_HOME."""
    started: list[Server] = []

    def fresh(*, runner: str = "off", base: str = "") -> Server:
        started.append(start(home(), runner=runner, base=base))
        return started[-1]

    yield fresh
    for server in started:
        server.end()


def keep_view(rows: int) -> str:
    """Compute and store Explore's view of the bundled model on `rows` rows of its first task; returns its key."""
    request = ViewRequest("demo/tiny-bert", "demo/acceptability", max_rows=rows)
    facts, arrays = measuring.compute(request, lambda done, total, text: None)
    key = key_of(request, sources.resolve(request.model), rows_of(request.task, None))
    results.STORE.publish(key, facts, arrays)
    return key


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server without a runner, shared by the tests of a file; each test uses its own runs."""
    shared = start(tmp_path_factory.mktemp("home"))
    yield shared
    shared.end()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"the server did not come up:\n{log.read_text(errors='replace')}")


def becomes(page: Page, read: Callable[[], object], expected: object) -> None:
    """Wait until `read()` returns `expected`, where Playwright has no such expectation."""
    deadline = time.monotonic() + PATIENCE / 1000
    value = read()
    while value != expected and time.monotonic() < deadline:
        page.wait_for_timeout(100)
        value = read()
    assert value == expected


def steady(page: Page, read: Callable[[], Value], times: int = 10) -> Value:
    """Returns `read()` once it has been stable for several reads, a tenth of a second apart."""
    deadline = time.monotonic() + PATIENCE / 1000
    value, same = read(), 0
    while same < times:
        assert time.monotonic() < deadline, f"still moving: {value}"
        page.wait_for_timeout(100)
        before, value = value, read()
        same = same + 1 if value == before else 0
    return value


def fits(page: Page) -> bool:
    """Whether the page is no wider than its window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width == 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.when == "call" and (tabs := item.stash.get(TABS, None)):
        report.sections += [(f"tab {tab.url}", _shown(tab)) for tab in tabs]
    return report


def _shown(tab: Page) -> str:
    try:
        return tab.locator("body").inner_text(timeout=5_000)[:4_000]
    except Error as error:
        return f"not readable: {error}"


@pytest.fixture
def open_tab(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """`open_tab(url, dark=False, width=1280)`: a tab in a separate browser session.

    Script errors and violations of the Content-Security-Policy fail the test; the report of a failed test ends with the
    text of its tabs.
    """
    errors: list[str] = []
    contexts = []
    tabs = request.node.stash[TABS] = []

    def opened(url: str, *, dark: bool = False, width: int = 1280) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        tabs.append(page)
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda message: errors.append(message.text) if "Content Security Policy" in message.text else None,
        )
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
