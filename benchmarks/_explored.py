"""Made-up views of the size that the bars of Explore speak of, and Explore in a real browser."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, Locator, Page

from isoviz import tasks
from isoviz.exploring import measuring, points, results, shrinkage
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.metrics.cloud_stream import CloudStream
from isoviz.models import sources
from isoviz.models.profile import profile
from isoviz.models.views import TokenView, Views
from tests.dashboard.reading import OPEN

MODEL, TASK = "demo/tiny-bert", "demo/acceptability"
PATIENCE = 120_000
"""Milliseconds."""


def key_for(request: ViewRequest) -> str:
    """The key under which the view of a request is stored."""
    return key_of(request, sources.resolve(request.model), rows_of(request.task, request.data))


def publish(n: int, d: int, rows: int) -> ViewRequest:
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
        stream = CloudStream(d)
        stream.update(clouds[layer, "cls"].astype(np.float64))
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
    results.publish(key_for(request), facts, arrays)
    return request


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


def address(url: str, request: ViewRequest, **more: object) -> str:
    """Of the page of a view, every section open."""
    return f"{url}?{urlencode({'explore_rows': request.max_rows, **OPEN, **more})}"


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


FIRST_PICTURE = ".st-key-explore_profile .js-plotly-plot .main-svg"


def first_picture(page: Page) -> Locator:
    """The layer profile, drawn."""
    return page.locator(FIRST_PICTURE).first


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
