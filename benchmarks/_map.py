"""The map of many points in a real browser: how it is drawn, moved, zoomed and drawn around, and how plotly alone draws it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import plotly
from _explored import Line, address, drag, frames, key_for, map_area, opened, seconds_until
from playwright.sync_api import Browser, Page

from isoviz.exploring import maps, results
from isoviz.exploring.request import ViewRequest

FLUID = 50.0
"""Milliseconds between frames: twenty a second."""
LASSO = [(0.3, 0.2), (0.7, 0.25), (0.75, 0.8), (0.35, 0.85), (0.3, 0.25)]


def figure_of(coordinates: np.ndarray[Any, Any], table: Any) -> Any:
    """The map as the page sends it to the browser."""
    from dashboard.explore import map_figure

    return map_figure.cloud_map(coordinates, ["PC 1", "PC 2"], table["label"], table["sentence"].tolist())


def map_of(request: ViewRequest) -> Any:
    """The PCA map of a made-up view."""
    view = results.find(key_for(request))
    assert view is not None
    return figure_of(maps.pca(view.points(1, "cls")).coordinates, view.table("cls"))


def big_map(browser: Browser, url: str, request: ViewRequest, n: int, repeats: int) -> list[Line]:
    """A map of all points: first drawing, frames while panning and zooming, and the table of a lasso."""
    drawn, moved, zoomed, listed = [], [], [], []
    plainly: list[tuple[float, float]] = []
    for _ in range(repeats):
        plainly.append(by_plotly(browser, request))
        began = time.perf_counter()
        with opened(browser, address(url, request, explore_points=n)) as page:
            page.get_by_text(f"{n:,} points, d =").first.wait_for()
            page.wait_for_function(DRAWN)
            drawn.append(time.perf_counter() - began)
            page.wait_for_timeout(2000)  # the rest of the page
            settled(page)
            mode(page, "pan")
            moved.append(frame_time(page, moving(page)))
            zoomed.append(frame_time(page, zooming(page)))
            mode(page, "lasso")
            drag(page, LASSO, 8)
            shown = page.get_by_text(f"of {n:,} points selected")
            table = page.locator(".st-key-explore_selected [data-testid=stDataFrame] canvas").first
            listed.append(seconds_until(page, page.mouse.up, shown, table)[1])
    return [
        Line("from the address to the map", drawn, "s"),
        Line("between frames while it is moved (p95)", moved, "ms", FLUID),
        Line("the same, all drawn by plotly (scattergl)", [one for one, _ in plainly], "ms"),
        Line("between frames while it is zoomed (p95)", zoomed, "ms", FLUID),
        Line("the same, all drawn by plotly (scattergl)", [other for _, other in plainly], "ms"),
        Line("from the end of a lasso to its table", listed, "s", 1.0),
    ]


def by_plotly(browser: Browser, request: ViewRequest) -> tuple[float, float]:
    """Milliseconds between frames, moved and zoomed, of the same map as plotly draws it on an empty page."""
    with opened(browser, "about:blank") as page:
        page.set_content('<div class="ivz-map-plot" style="width: 1008px; height: 560px"></div>')
        page.add_script_tag(path=str(Path(plotly.__file__).parent / "package_data" / "plotly.min.js"))
        page.evaluate(PLOT, json.loads(map_of(request).to_json()))
        page.wait_for_timeout(1000)
        return frame_time(page, moving(page)), frame_time(page, zooming(page))


PLOT = """({ data, layout }) => Plotly.newPlot(
  document.querySelector(".ivz-map-plot"), data, { ...layout, dragmode: "pan" }, { scrollZoom: true })"""


DRAWN = "() => document.querySelector('.ivz-map-points')?.layer?.area !== undefined"


def settled(page: Page) -> None:
    """Until nothing of the page is being drawn."""
    page.locator("[data-testid=stStatusWidget]").wait_for(state="detached")


def mode(page: Page, name: str) -> None:
    """What dragging over the map does."""
    map_area(page)
    page.locator(f'.ivz-map-plot .modebar-btn[data-attr="dragmode"][data-val="{name}"]').click(force=True)


def moving(page: Page) -> Iterator[None]:
    """The map moved to and fro."""
    drag(page, [(0.5, 0.5), (0.6, 0.6), (0.4, 0.45), (0.55, 0.5)], 20)
    page.mouse.up()
    yield


def zooming(page: Page) -> Iterator[None]:
    """In and out by the wheel."""
    box = map_area(page)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for step in [-120] * 8 + [120] * 8:
        page.mouse.wheel(0, step)
        page.wait_for_timeout(30)
    yield


def frame_time(page: Page, act: Iterator[None]) -> float:
    """95th percentile of the milliseconds between frames."""
    return float(np.quantile(frames(page, lambda: next(act)), 0.95))
