"""The map in a real browser: drawn around, listed, own sentences placed, the same by its address, files that parse."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from isoviz.exploring import desk, measuring, results
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.models import sources
from tests.browser.conftest import Server

ROWS = 60
LONG = 240_000
"""Milliseconds for what waits on a process that imports torch on a busy machine."""


@pytest.fixture
def serving(serve: Callable[..., Server]) -> Iterator[Server]:
    """A server that has the view of the bundled model already."""
    request = ViewRequest("demo/tiny-bert", "demo/acceptability", max_rows=ROWS)
    facts, arrays = measuring.compute(request, lambda done, total, text: None)
    key = key_of(request, sources.resolve(request.model), rows_of(request.task, None))
    results.publish(results.root() / "made", key, facts, arrays, at=results.root())
    yield serve()
    desk.close()


def draw_around(page: Page) -> None:
    """A lasso around the middle of the map."""
    area = page.locator(".ivz-map-plot .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    corners = [(0.3, 0.2), (0.7, 0.25), (0.75, 0.8), (0.35, 0.85), (0.3, 0.25)]
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*at[0])
    page.mouse.down()
    for x, y in at[1:]:
        page.mouse.move(x, y, steps=8)
    page.mouse.up()


def test_lasso_own_sentence_address_and_files(serving: Server, open_tab: Callable[..., Page], tmp_path: Path) -> None:
    page = open_tab(f"{serving.url}/explore?explore_rows={ROWS}", width=1440)
    expect(page.locator(".ivz-map-plot .main-svg").first).to_be_visible(timeout=LONG)
    draw_around(page)
    selected = page.get_by_text(f"of {ROWS} points selected")
    expect(selected).to_be_visible()
    told = selected.inner_text()
    assert 0 < int(told.split()[0]) < ROWS and "explore_lasso=" in page.url
    address = page.url
    page.wait_for_timeout(2000)
    assert page.url == address  # drawing it again is no new selection

    # the same in a fresh session, on a telephone at night
    other = open_tab(page.url, dark=True, width=390)
    expect(other.get_by_text(told)).to_be_visible()
    assert other.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    button = other.locator(".st-key-explore_map_points_csv button")
    expect(button).to_be_visible(timeout=LONG)
    with other.expect_download() as got:
        button.click()
    table = tmp_path / "points.csv"
    got.value.save_as(table)
    assert len(pd.read_csv(io.BytesIO(table.read_bytes()))) == ROWS
    other.close()

    with page.expect_download() as got:
        page.get_by_role("button", name="Parquet").click()
    saved = tmp_path / "points.parquet"
    got.value.save_as(saved)
    points = pd.read_parquet(saved)
    assert len(points) == ROWS and points["selected"].sum() == int(told.split()[0])
    with page.expect_download() as got:
        page.locator(".ivz-map-plot .modebar-btn[data-title='Picture (SVG)']").click()
    picture = tmp_path / "map.svg"
    got.value.save_as(picture)
    assert picture.read_text().lstrip().startswith("<svg") and got.value.suggested_filename.startswith(
        "explore-demo-tiny-bert"
    )

    field = page.get_by_role("textbox", name="Your own sentences")
    field.fill("the old dog sleeps\nnobody sleep")
    field.press("Control+Enter")
    expect(page.get_by_text("Nearest to your sentences")).to_be_visible(timeout=LONG)
    names = page.locator(".ivz-map-plot").evaluate("plot => plot._fullData.map(t => [t.name, t._length])")
    assert ["own sentences", 2] in names
    expect(page.get_by_text(told)).to_be_visible()  # what was drawn is still there

    page.get_by_role("button", name="Clear", exact=True).click()
    expect(selected).to_have_count(0)
    assert "explore_lasso" not in page.url


def test_two_views_stand_side_by_side_and_the_link_is_copied(serving: Server, open_tab: Callable[..., Page]) -> None:
    page = open_tab(f"{serving.url}/explore?explore_rows={ROWS}", width=1440)
    expect(page.locator(".ivz-map-plot .main-svg").first).to_be_visible(timeout=LONG)
    page.locator(".st-key-explore_views").get_by_text("2", exact=True).click()
    expect(page.get_by_role("heading", name="Side by side")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(13)  # one output matrix: both are of one model
    lefts = [plot.bounding_box()["x"] for plot in page.locator(".ivz-map").all()]  # type: ignore[index]
    assert len(lefts) == 2 and lefts[1] > lefts[0] + 300
    expect(page.locator(".ivz-map-plot .main-svg").nth(1)).to_be_attached()
    draw_around(page)  # in the first; both show the same rows, so the second shows which they are
    told = page.get_by_text(f"of {ROWS} points selected")
    expect(told).to_be_visible()
    count = int(told.inner_text().removeprefix("View 1: ").split()[0])
    expect(page.get_by_text(f"{count} of them selected in view 1")).to_be_visible()
    strong = "plot => plot._fullData.filter(t => t.marker.opacity > 0.5).map(t => t._length).reduce((a, b) => a + b, 0)"
    assert page.locator(".ivz-map-plot").nth(1).evaluate(strong) == count
    page.set_viewport_size({"width": 390, "height": 900})
    expect(page.locator(".ivz-map").nth(1)).to_be_visible()
    assert page.locator(".ivz-map").nth(0).bounding_box()["x"] == page.locator(".ivz-map").nth(1).bounding_box()["x"]  # type: ignore[index]
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied.").or_(page.get_by_text(page.url))).to_be_visible()
