"""How fast Explore shows its figures: a new view, a stored view, a map of 20,000 points, a matrix of 1024 × 1024.

    python benchmarks/explore.py [--repeats 5] [--quick] [--out docs]

Needs Chromium and playwright. Bars: on the bundled model × demo task the first pictures within 2 s and
everything within 10 s; a stored view within 1 s of the page's request, and in a new tab of a new browser,
its first picture at most 1 s later than the same page without pictures; a map of 20,000 points at twenty frames per
second while panning and zooming, and a lasso's table within 1 s;
1024 × 1024 cells in at most 0.6 MB and 500 ms from request to drawing, without the wait for other figures. Exit
code 1 if one is missed.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import psutil
from _explored import (
    FIRST_PICTURE,
    MODEL,
    TASK,
    Line,
    address,
    first_picture,
    key_for,
    note_drawings,
    opened,
    publish,
    seconds_to,
    seconds_until,
)
from _map import big_map, figure_of
from _report import Table, machine, write_section
from _timing import medians, options
from playwright.sync_api import Browser, sync_playwright

from isoviz.exploring import jobs, maps, results, selection
from isoviz.exploring.request import ViewRequest
from isoviz.home import home
from isoviz.jobs import queue, scheduling
from isoviz.jobs.spares import SpareKeeper
from tests.browser.conftest import FLAGS, start

ROOT = Path(__file__).resolve().parent.parent
OWN_LOG = "benchmark.log"
PACKAGES = ("torch", "transformers", "streamlit", "plotly", "numpy")


def main() -> int:
    """Print the tables, and write them where asked; 1 if a bar is missed."""
    chosen = options(__doc__, repeats=5)
    n, d, wide = (2_000, 64, 128) if chosen.quick else (20_000, 768, 1024)
    repeats = chosen.repeats
    sections: list[tuple[Table, list[Line]]] = []

    def tell(title: str, lines: list[Line], *notes: str) -> None:
        sections.append(
            (Table(title, ["", "median", "slowest", "bar"], [line.cells() for line in lines], [*notes]), lines)
        )
        print(sections[-1][0].text(), flush=True)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.environ |= {"ISOVIZ_HOME": home, "ISOVIZ_RUNNER": "off", "HF_HUB_OFFLINE": "1"}
        os.environ["TRANSFORMERS_VERBOSITY"] = "error"
        logging.getLogger("streamlit").setLevel(logging.ERROR)  # it misses its server, which AppTest does without
        spares, ratio = processes(repeats)
        note = f"A fresh process takes {ratio:.1f} times as long to the first pictures as one that waits."
        tell("From the request to the view, bundled model × demo task, 500 rows", spares, note)
        tell("A kept view of the bundled model, server", kept(repeats))
        cloud, matrix = publish(n, d, rows=300), publish(2 * wide, wide, rows=301)
        tell(f"A map of {n:,} points in {d} dimensions, engine", cloud_steps(cloud, repeats))
        server = start(Path(home), ISOVIZ_SPARES="on")
        try:
            with sync_playwright() as playwright:
                path = os.environ.get("ISOVIZ_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
                browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
                url = f"{server.url}/explore"
                tell("From pressing Analyse, browser", pressed(browser, url, repeats))
                tell("A kept view in a new tab, browser", new_tab(browser, server.url, repeats))
                title = f"A map of {n:,} points, browser (without a GPU: painted)"
                tell(title, big_map(browser, url, cloud, n, repeats))
                tell(f"|ρ| of {wide} × {wide} dimensions, browser", big_matrix(browser, url, matrix, repeats))
                browser.close()
        finally:
            server.end()
    missed = [line.what for _, lines in sections for line in lines if line.missed]
    verdict = f"Bars missed: {', '.join(missed)}." if missed else "Bars: all bars met."
    print(f"\n{verdict}")
    if chosen.out:
        head = machine(PACKAGES, f"median of {repeats}")
        body = "\n\n".join(["## Explore", head, verdict, *(table.markdown() for table, _ in sections)])
        write_section(chosen.out / "benchmarks.md", "explore", body)
    return 1 if missed and not chosen.quick else 0


# ------------------------------------------------------------------------------------------------------------ engine


def processes(repeats: int) -> tuple[list[Line], float]:
    """Until the pictures and until everything, in a process that waits and in a fresh one, in turns; and the ratio of the first."""
    durations: dict[str, list[tuple[float, float]]] = {"a waiting process": [], "a fresh process": []}
    keeper = new_keeper()
    for number in range(repeats + 1):
        for index, times in enumerate(durations.values()):
            shutil.rmtree(results.STORE.root / "outputs", ignore_errors=True)  # it is stored per model, not per view
            request = ViewRequest(MODEL, TASK, seed=2 * number + index)
            scheduling.spare = waiting_spare(keeper) if index == 0 else None
            took = requested(request)
            if number:  # the first ones fill the disk's cache
                times.append(took)
    lines = [
        Line(f"{way}: {part_name}", [pair[part] for pair in times], "s", bar if way == "a waiting process" else None)
        for part, part_name, bar in ((0, "first pictures", 2.0), (1, "everything", 10.0))
        for way, times in durations.items()
    ]
    keeper.close()
    waiting, fresh = (statistics.median(pair[0] for pair in times) for times in durations.values())
    return lines, fresh / waiting


def new_keeper() -> SpareKeeper:
    """Keeper of a spare process beside that of the pages drawn here."""
    folder = home() / "jobs"
    return SpareKeeper(jobs.PREPARE, "any", lambda count: folder / "logs" / OWN_LOG, folder / "benchmark-spare")


def waiting_spare(keeper: SpareKeeper) -> SpareKeeper:
    """The keeper with a new spare that has imported everything."""
    keeper.expectation.renew()
    keeper.tend()
    ready(OWN_LOG)
    return keeper


def ready(logs: str = "spare-*.log") -> None:
    """Wait until a spare of this home, with such a log, has imported everything."""
    deadline = time.monotonic() + 120
    while not any("ready" in log.read_text() for log in (home() / "jobs" / "logs").glob(logs)):
        if time.monotonic() > deadline:
            raise SystemExit("the spare process does not get ready")
        time.sleep(0.05)


def requested(request: ViewRequest) -> tuple[float, float]:
    """Seconds until there are pictures, and until there is everything."""
    key = key_for(request)
    began = time.perf_counter()
    jobs.start(request, key)
    while results.find(key) is None:
        time.sleep(0.005)
    first = time.perf_counter() - began
    while (state := queue.look(jobs.VIEW, key)).under_way:
        time.sleep(0.005)
    if state.status != "done":
        raise SystemExit(f"the view failed: {state.message}")
    took = time.perf_counter() - began
    psutil.wait_procs(psutil.Process().children())  # its own end must not fall into the next one's time
    return first, took


def kept(repeats: int) -> list[Line]:
    """Seconds that the server takes to draw the page of a stored view: again in the same session, and in another one."""
    from streamlit.testing.v1 import AppTest

    from dashboard import routes
    from dashboard.explore import numbers

    numbers.TABLES_AFTER = 0.0  # it waits for a browser there, not for itself
    if results.find(key_for(ViewRequest(MODEL, TASK))) is None:
        jobs.obtain(ViewRequest(MODEL, TASK))

    def session() -> Any:
        app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=120).run()
        app.switch_page(str(ROOT / "pages" / "explore.py"))
        return app

    def drawn(app: Any) -> float:
        began = time.perf_counter()
        app.run()
        took = time.perf_counter() - began
        if app.exception or not any(
            f'"{routes.basic_plotly_path()}"' in element.proto.json for element in app.get("bidi_component")
        ):
            raise SystemExit(f"the page shows no picture: {app.exception}")
        return took

    first = drawn(session())
    sessions = [session() for _ in range(repeats)]
    others = [drawn(app) for app in sessions]
    again = [drawn(app) for app in sessions]
    return [
        Line("drawn again", again, "s", 1.0),
        Line("in another session", others, "s", 1.0),
        Line("the server's first time", [first], "s"),
    ]


def cloud_steps(request: ViewRequest, repeats: int) -> list[Line]:
    """The steps behind a map and its lasso."""
    view = results.find(key_for(request))
    assert view is not None
    points, table = view.points(1, "cls"), view.table("cls")
    projection = maps.pca(points)
    low, high = np.quantile(projection.coordinates, 0.3, axis=0), np.quantile(projection.coordinates, 0.7, axis=0)
    line = [(low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1])]

    def figure() -> Any:
        return figure_of(projection.coordinates, table)

    drawn = figure()
    steps = {
        "reading the points": lambda: view.points(1, "cls"),
        "PCA": lambda: maps.pca(points),
        "the figure": figure,
        "the figure as JSON": drawn.to_json,
        "lasso to table": lambda: table.iloc[np.flatnonzero(selection.inside(projection.coordinates, line))],
    }
    lines = [Line(name, [took], "ms") for name, took in medians(steps, repeats).items()]
    return [*lines, Line("size of the JSON", [len(drawn.to_json()) / 2**20], "MiB")]


# ----------------------------------------------------------------------------------------------------------- browser


def pressed(browser: Browser, url: str, repeats: int) -> list[Line]:
    """From pressing Analyse, with a spare that the open page had ready, until the first picture and until everything."""
    first, everything = [], []
    for number in range(repeats):
        shutil.rmtree(results.STORE.root / "outputs", ignore_errors=True)
        with opened(browser, address(url, ViewRequest(MODEL, TASK, max_rows=499 - number))) as page:
            button = page.get_by_role("button", name="Analyse", exact=True)
            button.wait_for()
            ready()
            page.wait_for_timeout(1000)
            note_drawings(page, FIRST_PICTURE)
            began = time.perf_counter()
            button.click()
            first.append(seconds_to(page, FIRST_PICTURE))
            page.get_by_role("button", name="Stop", exact=True).wait_for(state="detached")
            page.locator(".st-key-explore_output .js-plotly-plot").wait_for()
            everything.append(time.perf_counter() - began)
            for log in (home() / "jobs" / "logs").glob(
                "spare-*.log"
            ):  # the next spare starts shortly after the view is complete
                log.unlink()
    return [Line("first picture", first, "s", 2.0), Line("everything", everything, "s", 10.0)]


def new_tab(browser: Browser, url: str, repeats: int) -> list[Line]:
    """From navigation to the first and the last picture, and for a page without pictures; then another stored view in that tab."""
    request, other = ViewRequest(MODEL, TASK), ViewRequest(MODEL, TASK, max_rows=499)
    jobs.obtain(request)
    jobs.obtain(other)
    empty, first, last, same = [], [], [], []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        with opened(browser, f"{url}/explore?explore_rows=77") as page:
            page.get_by_text("Pick a model and a task, then press Analyse").wait_for()
            empty.append(time.perf_counter() - began)
        began = time.perf_counter()
        with opened(browser, address(f"{url}/explore", request)) as page:
            first_picture(page).wait_for()
            first.append(time.perf_counter() - began)
            page.locator(".st-key-explore_output .js-plotly-plot .main-svg").first.wait_for()
            page.locator(".ivz-map-plot .main-svg").first.wait_for()
            last.append(time.perf_counter() - began)
            page.wait_for_timeout(1500)
            field = page.get_by_label("Rows", exact=True)
            field.fill(str(other.max_rows))
            below = page.get_by_text(f"(n = {other.max_rows}, d =")
            same += seconds_until(page, functools.partial(field.press, "Enter"), below)
    lines = (("the page before a first look", empty), ("first picture", first), ("all pictures", last))
    figures = [Line(title, values[1:], "s") for title, values in lines]
    later = [picture - without for without, picture in zip(empty[1:], first[1:], strict=True)]
    figures.insert(2, Line("first picture, after the page before a first look", later, "s", 1.0))
    return [*figures, Line("another kept view in the same tab", same[1:], "s", 1.0)]


def big_matrix(browser: Browser, url: str, request: ViewRequest, repeats: int) -> list[Line]:
    """Bytes on the wire; milliseconds that the matrix adds to a page: from asking for it to the last byte, and drawing it. Then
    the same with all other figures of the page being drawn meanwhile."""
    sizes, alone, among = [], [], []
    for _ in range(repeats):
        log: list[dict[str, Any]] = []
        with opened(browser, address(url, request), log) as page:
            page.wait_for_function("() => performance.getEntriesByName('isoviz-matrix').length")
            asked, came, drawing, end = page.evaluate(MATRIX)
            alone.append(came - asked + drawing)
            among.append(end - asked)
            sizes.append(
                sum(request["request"].sizes()["responseBodySize"] for request in log if "/views/" in request["url"])
                / 1e6
            )
    return [
        Line("sent", sizes, "MB", 0.6),
        Line("asked, sent and drawn", alone, "ms", 500.0),
        Line("the same among all other figures", among, "ms"),
    ]


MATRIX = """() => {
  const parts = performance.getEntriesByType("resource").filter((e) => e.name.includes("/views/"));
  const [drawn] = performance.getEntriesByName("isoviz-matrix");
  const [asked, came] = [Math.min(...parts.map((e) => e.startTime)), Math.max(...parts.map((e) => e.responseEnd))];
  return [asked, came, drawn.duration, drawn.startTime + drawn.duration];
}"""


if __name__ == "__main__":
    sys.exit(main())
