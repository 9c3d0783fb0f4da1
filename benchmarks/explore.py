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
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import psutil
from _browser import Line, chromium, opened, table_of
from _report import ROOT, finish, machine, options, parse
from playwright.sync_api import Browser, Locator, Page

from isoviz import tasks
from isoviz.exploring import jobs, measuring, points, results, shrinkage
from isoviz.exploring.request import ViewRequest
from isoviz.home import home
from isoviz.jobs import queue
from isoviz.jobs.prepared import PreparedWorker
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models.profile import profile
from isoviz.models.views import TokenView, Views
from tests.browser.conftest import start
from tests.dashboard.reading import key_for
from tests.runs.observing import until

MODEL, TASK = "demo/tiny-bert", "demo/acceptability"
FLUID = 50.0
"""Milliseconds between frames: twenty a second."""
LASSO = [(0.3, 0.2), (0.7, 0.25), (0.75, 0.8), (0.35, 0.85), (0.3, 0.25)]
OWN_LOG = "benchmark.log"
PACKAGES = ("torch", "transformers", "streamlit", "plotly", "numpy")


def main() -> int:
    """Print the tables, and write them where asked; 1 if a bar is missed."""
    chosen = parse(options(__doc__, repeats=5))
    n, d, wide = (2_000, 64, 128) if chosen.quick else (20_000, 768, 1024)
    repeats = chosen.repeats
    sections: list[tuple[str, list[Line], str]] = []

    def tell(title: str, lines: list[Line], note: str = "") -> None:
        sections.append((title, lines, note))
        print(table_of(title, lines, note).text(), flush=True)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.environ |= {"ISOVIZ_HOME": home, "ISOVIZ_RUNNER": "off", "HF_HUB_OFFLINE": "1"}
        os.environ["TRANSFORMERS_VERBOSITY"] = "error"
        logging.getLogger("streamlit").setLevel(logging.ERROR)  # it misses its server, which AppTest does without
        spares, ratio = processes(repeats)
        note = f"A fresh process takes {ratio:.1f} times as long to the first pictures as one that waits."
        tell("From the request to the view, bundled model × demo task, 500 rows", spares, note)
        tell("A kept view of the bundled model, server", kept(repeats))
        cloud, matrix = publish_view(n, d, rows=300), publish_view(2 * wide, wide, rows=301)
        server = start(Path(home), ISOVIZ_SPARES="on")
        try:
            with chromium() as browser:
                url = f"{server.url}/explore"
                tell("From pressing Analyse, browser", pressed(browser, url, repeats))
                tell("A kept view in a new tab, browser", new_tab(browser, server.url, repeats))
                title = f"A map of {n:,} points, browser"
                tell(title, big_map(browser, url, cloud, n, repeats))
                tell(f"|ρ| of {wide} × {wide} dimensions, browser", big_matrix(browser, url, matrix, repeats))
        finally:
            server.end()
    missed = [line.what for _, lines, _ in sections for line in lines if line.missed]
    tables = [table_of(title, lines, *filter(None, [note])) for title, lines, note in sections]
    return finish(chosen, "explore", "## Explore", machine(PACKAGES, f"median of {repeats}"), missed, *tables)


# ------------------------------------------------------------------------------------------ made-up views


def publish_view(n: int, d: int, rows: int) -> ViewRequest:
    """Keep a made-up view of two layers, n points in d dimensions each, where the page of this request finds it.

    The clouds are correlated, with a falling spectrum, in two groups; the texts and labels are the task's, repeated.
    """
    random = np.random.default_rng(0)
    mixing = np.linalg.qr(random.normal(size=(d, d)))[0] * np.exp(-np.arange(d) / (d / 4))
    frame = tasks.load(tasks.get(TASK)).validation
    frame = pd.concat([frame] * (n // len(frame) + 1)).iloc[:n].reset_index(drop=True)
    shift = 3.0 * frame["label"].to_numpy()[:, None] * mixing[:, 0] / np.linalg.norm(mixing[:, 0])
    clouds = {(layer, "cls"): (random.normal(size=(n, d)) @ mixing.T + shift).astype(np.float32) for layer in (0, 1)}
    few = np.arange(min(n, 5_000))
    of_tokens = {}
    for layer in (0, 1):
        stream = CovarianceAccumulator(d)
        stream.update(clouds[layer, "cls"])
        of_tokens[layer] = TokenView(stream, clouds[layer, "cls"], clouds[layer, "cls"][few], few, few)
    views = Views("made up", n, 1, np.full(n, 9), 128, 0, "cpu", clouds, of_tokens, ())  # type: ignore[arg-type]
    request = ViewRequest(MODEL, TASK, max_rows=rows)
    facts, _ = measuring.compute(ViewRequest(MODEL, TASK, max_rows=12), lambda done, total, text: None)
    facts |= {"request": request.as_json(), "rows": n, "rows_in_split": n, "depth": 1}
    facts |= {"layers": None, "shrinkage": {"reason": "these points are made up"}}
    records = shrinkage.without(profile(views, split="validation"), "these points are made up")
    facts["entries"] = [record.model_dump(mode="json") for record in records]
    arrays = measuring.arrays_of(views)
    arrays |= measuring.points_of(views, points.rows(frame, tasks.get(TASK), views.lengths), ["w"] * len(few))
    results.STORE.publish(key_for(request), facts, arrays)
    return request


# ------------------------------------------------------------------------------------------------------------ engine


def processes(repeats: int) -> tuple[list[Line], float]:
    """Until the pictures and until everything, in a process that waits and in a fresh one, in turns; and the ratio of the first."""
    durations: dict[str, list[tuple[float, float]]] = {"a waiting process": [], "a fresh process": []}
    keeper = new_keeper()
    for number in range(repeats + 1):
        for index, times in enumerate(durations.values()):
            shutil.rmtree(results.STORE.root / "outputs", ignore_errors=True)  # it is stored per model, not per view
            request = ViewRequest(MODEL, TASK, seed=2 * number + index)
            queue.prepared = waiting_spare(keeper) if index == 0 else None
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


def new_keeper() -> PreparedWorker:
    """Keeper of a spare process beside that of the pages drawn here."""
    return PreparedWorker(jobs.PREPARE, "any", lambda count: home() / "jobs" / "logs" / OWN_LOG)


def waiting_spare(keeper: PreparedWorker) -> PreparedWorker:
    """The keeper with a new spare that has imported everything."""
    keeper.expect()
    keeper.check()
    ready(OWN_LOG)
    return keeper


def ready(logs: str = "prepared-*.log") -> None:
    """Wait until a spare of this home, with such a log, has imported everything."""
    until(lambda: any("ready" in log.read_text() for log in (home() / "jobs" / "logs").glob(logs)))


def requested(request: ViewRequest) -> tuple[float, float]:
    """Seconds until there are pictures, and until there is everything."""
    key = key_for(request)
    began = time.perf_counter()
    queue.start(jobs.VIEW, key, request.as_json())
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

    from dashboard.server import routes

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
            page.locator(LAST_PICTURE).first.wait_for()
            everything.append(time.perf_counter() - began)
            # the next spare starts shortly after the view is complete
            for log in (home() / "jobs" / "logs").glob("prepared-*.log"):
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
            page.locator(FIRST_PICTURE).first.wait_for()
            first.append(time.perf_counter() - began)
            page.locator(LAST_PICTURE).first.wait_for()
            last.append(time.perf_counter() - began)
            page.wait_for_timeout(1500)
            page.get_by_role("button", name="Change", exact=True).click()
            field = page.get_by_label("Rows", exact=True)
            field.fill(str(other.max_rows))
            below = page.get_by_text(f"(n = {other.max_rows}, d =").first
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


def address(url: str, request: ViewRequest, **more: object) -> str:
    """Of the page of a view."""
    return f"{url}?{urlencode({'explore_rows': request.max_rows, **more})}"


LAST_PICTURE = ".ivz-map-plot .main-svg"
FIRST_PICTURE = ".st-key-explore_profile .js-plotly-plot .main-svg"


def seconds_until(page: Page, act: Any, *shown: Locator) -> list[float]:
    """Seconds from an act until each of these is visible."""
    began = time.perf_counter()
    act()
    durations = []
    for locator in shown:
        locator.wait_for()
        durations.append(time.perf_counter() - began)
    return durations


DRAWN_AT = """(selectors) => {
  globalThis.ivzDrawn = {};
  addEventListener("pointerdown", (event) => (globalThis.ivzPressed = event.timeStamp), { capture: true });
  const look = () => {
    for (const one of selectors) {
      if (!(one in ivzDrawn) && document.querySelector(one)) {
        ivzDrawn[one] = null;
        requestAnimationFrame(() => requestAnimationFrame((now) => (ivzDrawn[one] = now)));  // one frame later it is on the screen
      }
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""


def note_drawings(page: Page, *selectors: str) -> None:
    """Have the page itself note when a mouse button goes down and when each of these is on the screen."""
    page.evaluate(DRAWN_AT, list(selectors))


def seconds_to(page: Page, selector: str) -> float:
    """From the last time a mouse button went down to that: by the page's clock, without the time that asking takes."""
    page.wait_for_function("(selector) => ivzDrawn[selector]", arg=selector)
    seconds: float = page.evaluate("(selector) => (ivzDrawn[selector] - ivzPressed) / 1000", selector)
    return seconds


FRAMES = """() => {
  globalThis.ivzFrames = [];
  const tick = (now) => { globalThis.ivzFrames.push(now); globalThis.ivzTick = requestAnimationFrame(tick); };
  globalThis.ivzTick = requestAnimationFrame(tick);
}"""


def frames(page: Page, act: Any) -> list[float]:
    """Milliseconds between the frames that were drawn during an act."""
    page.evaluate(FRAMES)
    act()
    moments: list[float] = page.evaluate(
        "() => { cancelAnimationFrame(globalThis.ivzTick); return globalThis.ivzFrames; }"
    )
    return list(np.diff(moments))


def map_area(page: Page) -> dict[str, float]:
    """Where the map takes the mouse."""
    area = page.locator(".ivz-map-plot .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    return {**box}


def drag(page: Page, corners: list[tuple[float, float]], steps: int) -> None:
    """Drag over the map, from corner to corner in shares of its size; ends with the button still down."""
    box = map_area(page)
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*at[0])
    page.mouse.down()
    for x, y in at[1:]:
        page.mouse.move(x, y, steps=steps)


def big_map(browser: Browser, url: str, request: ViewRequest, n: int, repeats: int) -> list[Line]:
    """A map of all points: first drawing, frames while panning and zooming, and the table of a lasso."""
    drawn, moved, zoomed, listed = [], [], [], []
    for _ in range(repeats):
        began = time.perf_counter()
        with opened(browser, address(url, request, explore_points=n, explore_large="map")) as page:
            page.wait_for_function(DRAWN)
            drawn.append(time.perf_counter() - began)
            page.wait_for_timeout(2000)  # the rest of the page
            settled(page)
            mode(page, "pan")
            moved.append(frame_time(page, moving))
            zoomed.append(frame_time(page, zooming))
            mode(page, "lasso")
            drag(page, LASSO, 8)
            shown = page.get_by_text(f"of {n:,} points selected")
            table = page.locator(".st-key-explore_selected [data-testid=stDataFrame] canvas").first
            listed.append(seconds_until(page, page.mouse.up, shown, table)[1])
    return [
        Line("from the address to the map", drawn, "s"),
        Line("between frames while it is moved (p95)", moved, "ms", FLUID),
        Line("between frames while it is zoomed (p95)", zoomed, "ms", FLUID),
        Line("from the end of a lasso to its table", listed, "s", 1.0),
    ]


DRAWN = "() => document.querySelector('.ivz-map-points')?.layer?.area !== undefined"


def settled(page: Page) -> None:
    """Until nothing of the page is being drawn."""
    page.locator("[data-testid=stStatusWidget]").wait_for(state="detached")


def mode(page: Page, name: str) -> None:
    """What dragging over the map does."""
    map_area(page)
    page.locator(f'.ivz-map-plot .modebar-btn[data-attr="dragmode"][data-val="{name}"]').click(force=True)


def moving(page: Page) -> None:
    """The map moved to and fro."""
    drag(page, [(0.5, 0.5), (0.6, 0.6), (0.4, 0.45), (0.55, 0.5)], 20)
    page.mouse.up()


def zooming(page: Page) -> None:
    """In and out by the wheel."""
    box = map_area(page)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for step in [-120] * 8 + [120] * 8:
        page.mouse.wheel(0, step)
        page.wait_for_timeout(30)


def frame_time(page: Page, act: Callable[[Page], None]) -> float:
    """95th percentile of the milliseconds between frames."""
    return float(np.quantile(frames(page, lambda: act(page)), 0.95))


if __name__ == "__main__":
    sys.exit(main())
