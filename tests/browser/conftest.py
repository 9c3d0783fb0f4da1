"""Real servers, shared by all tests here, and a real Chromium: `open_tab(url)` opens a page. Other tests find them gone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, expect, sync_playwright

from isoviz.exploring import measuring, results
from isoviz.exploring.request import ViewRequest
from isoviz.runs.store import Store
from tests.dashboard.reading import key_for
from tests.missing import missing
from tests.ports import answers, free_port
from tests.runs.observing import until

Value = TypeVar("Value")
OpenTab = Callable[..., Page]
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
PATIENCE = 60_000
"""Milliseconds that a page may take before a test gives up: a machine busy with other tests is slow."""

LONG = 300_000
"""Milliseconds for what waits on a process that imports torch, on an encoder or on training, on a busy machine."""

LOOPBACK = ("127.0.0.1", "localhost")
TABS = pytest.StashKey[list[Page]]()
"""The tabs that a test has opened."""

expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # waits have separate limits and name what they waited for
            item.add_marker(pytest.mark.timeout(1500))


@pytest.fixture(scope="package")
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
    """A running app, the store it reads and its ISOVIZ_HOME."""

    url: str
    store: Store
    process: subprocess.Popen[bytes]
    home: Path

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
    environment |= {"ISOVIZ_ROOTS": os.pathsep.join((tempfile.gettempdir(), os.getcwd()))}
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
    server = Server(url, store, process, folder)
    try:
        until(lambda: process.poll() is not None or answers(url), seconds=240)
        assert process.poll() is None, "the server did not come up"
    except BaseException:
        print(log.read_text(errors="replace"))
        server.end()
        raise
    return server


@pytest.fixture(scope="package")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """See `server`."""
    started = start(tmp_path_factory.mktemp("plain"), base="lab/isotropy")
    yield started
    started.end()


@pytest.fixture
def server(plain: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server of most tests, below a path, without a runner or examples. Each test makes its own runs there.

    For the test its home is also that of this process.
    """
    monkeypatch.setenv("ISOVIZ_HOME", str(plain.home))
    return plain


@pytest.fixture(scope="package")
def with_examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose pages are full of examples. No test makes runs there."""
    started = start(tmp_path_factory.mktemp("examples"), ISOVIZ_EXAMPLES="on")
    yield started
    started.end()


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that visitors reach by a link only."""
    started = start(tmp_path_factory.mktemp("guarded"), ISOVIZ_NO_TOKEN="")
    yield started
    started.end()


@pytest.fixture(scope="package")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that really trains; runs still going at the end are stopped and awaited."""
    started = start(tmp_path_factory.mktemp("training"), runner="on")
    yield started
    for row in started.store.list(status=["queued", "running"]):
        started.store.request_stop(row.id)
    deadline = time.monotonic() + 20
    while started.store.list(status="running") and time.monotonic() < deadline:
        time.sleep(0.2)
    started.end()


def keep_view(rows: int) -> str:
    """Compute and store Explore's view of the bundled model on `rows` rows of its first task, unless it is there; its key."""
    request = ViewRequest("demo/tiny-bert", "demo/acceptability", max_rows=rows)
    key = key_for(request)
    if results.find(key) is None:
        facts, arrays = measuring.compute(request, lambda done, total, text: None)
        results.STORE.publish(key, facts, arrays)
    return key


def becomes(page: Page, read: Callable[[], object], expected: object) -> None:
    """Wait until `read()` returns `expected`, where Playwright has no such expectation."""
    deadline = time.monotonic() + PATIENCE / 1000
    value = read()
    while value != expected and time.monotonic() < deadline:
        page.wait_for_timeout(100)
        value = read()
    assert value == expected


def stable(page: Page, read: Callable[[], Value], times: int = 10) -> Value:
    """Returns `read()` once it has been stable for several reads, a tenth of a second apart."""
    deadline = time.monotonic() + PATIENCE / 1000
    value, same = read(), 0
    while same < times:
        assert time.monotonic() < deadline, f"still moving: {value}"
        page.wait_for_timeout(100)
        before, value = value, read()
        same = same + 1 if value == before else 0
    return value


def hovered(matrix: Locator, row: int, column: int, visible: int) -> tuple[int, int, str] | None:
    """Dimensions and |ρ| in the readout of a visible cell of a matrix; None while it is empty."""
    canvas = matrix.locator("canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    side = box["width"] / visible
    canvas.hover(position={"x": (column + 0.5) * side, "y": (row + 0.5) * side})
    text = matrix.locator(".ivz-matrix-readout").inner_text()
    match = re.match(r"dimensions (\d+) and (\d+): \|ρ\| = ([\d.]+)", text)
    return (int(match[1]), int(match[2]), match[3]) if match else None


def drawn(page: Page) -> None:
    """Wait until a page of the app is complete."""
    expect(page.get_by_role("heading").or_(page.get_by_test_id("stAlert")).first).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)


def visit_all(page: Page) -> None:
    """Follow every link of the menu, which takes a tenth of the time that loading each page does."""
    links = page.get_by_test_id("stSidebarNavLink")
    expect(links).to_have_count(11)
    for link in links.all():
        address = link.evaluate("link => link.href")
        link.click()
        expect(page).to_have_url(re.compile(f"{re.escape(address)}([?#].*)?$"))
        drawn(page)


BRIGHTNESS = (
    "c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let s = 0;"
    " for (let i = 0; i < d.length; i += 4) s += d[i] + d[i + 1] + d[i + 2]; return s / (d.length / 4) / 3 / 255 }"
)
"""The mean brightness of a canvas, 0 to 1."""


POINTS = """selector => [...document.querySelectorAll(selector)].map((plot) => plot._fullData.map(({ x, y }) =>
  [x, y].map((values) => Array.from(values ?? []))))"""
"""The coordinates of each trace of plotly's figures."""


def save_page(page: Page, path: Path) -> str:
    """Press *Save as one page* once the page is complete; the file's content."""
    expect(page.locator("[data-test-script-state=running]")).to_have_count(0)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as one page").click()
    waiting.value.save_as(path)
    return path.read_text("utf-8")


def from_disk(open_tab: OpenTab, path: Path, **options: Any) -> Page:
    """A file of figures, opened with the network cut: it has drawn one, asked for nothing else, and reported no error."""
    page = open_tab("about:blank", offline=True, **options)
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    expect(page.locator(".plot .main-svg .trace path").first).to_be_visible()
    assert [url for url in requests if not url.startswith(("data:", "blob:"))] == [path.as_uri()] and errors == []
    return page


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
def open_tab(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[OpenTab]:
    """`open_tab(url, dark=False, width=1280)`: a tab in a separate browser session, with more options of Playwright's contexts.

    Script errors, violations of the Content-Security-Policy and requests to other hosts fail the test; the report of a
    failed test ends with the text of its tabs.
    """
    errors: list[str] = []
    contexts = []
    tabs = request.node.stash[TABS] = []

    def asked(url: str) -> None:
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and urlsplit(url).hostname not in LOOPBACK:
            errors.append(url)

    def opened(url: str, *, dark: bool = False, width: int = 1280, **options: Any) -> Page:
        options = {"viewport": {"width": width, "height": 900}, **options}
        context = chromium.new_context(color_scheme="dark" if dark else "light", **options)
        contexts.append(context)
        page = context.new_page()
        tabs.append(page)
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda sent: asked(sent.url))
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
