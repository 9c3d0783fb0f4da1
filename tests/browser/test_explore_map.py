"""The map in a real browser: drawn around, listed, own sentences placed, the same by its address, files that parse."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from dashboard.shared import theme
from isoviz import metrics
from isoviz.exploring import maps, results
from tests.browser.conftest import (
    LONG,
    POINTS,
    OpenTab,
    Server,
    becomes,
    fits,
    hovered,
    keep_view,
    save_page,
    stable,
)

ROWS = 100
"""Enough rows to colour their lengths by a scale, few enough that some points are isolated."""

RANGES = """() => {
  const { xaxis, yaxis } = document.querySelector(".ivz-map-plot")._fullLayout;
  return [...xaxis.range, ...yaxis.range];
}"""
PLACES = """() => {
  const [plot, canvas] = [".ivz-map-plot", ".ivz-map-points"].map((name) => document.querySelector(name));
  const { xaxis, yaxis } = plot._fullLayout;
  const box = plot.getBoundingClientRect();
  return canvas.layer.parts.flatMap(({ x, y, texts }, part) => [...x].map((_, i) => ({
    part, text: texts[i], colour: [...canvas.layer.colours[part].slice(4 * i, 4 * i + 3)],
    left: box.left + xaxis._offset + xaxis.l2p(x[i]), top: box.top + yaxis._offset + yaxis.l2p(y[i]),
  })));
}"""
"""Each point of the map and where plotly's axes have it on the screen."""


@pytest.fixture(autouse=True)
def _a_view(server: Server) -> None:
    """The server has the view of the bundled model already."""
    keep_view(ROWS)


def area_of(page: Page) -> dict[str, float]:
    """Where the first map has its points on the screen, once the rest of the page is there, which moves it."""
    expect(page.get_by_role("button", name="Save as one page")).to_be_visible(timeout=LONG)  # it comes last
    area = page.locator(".ivz-map-plot .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = stable(page, area.bounding_box)
    assert box is not None
    return {**box}


def draw_around(page: Page) -> None:
    """A lasso around the middle of the map."""
    box = area_of(page)
    corners = [(0.3, 0.2), (0.7, 0.25), (0.75, 0.8), (0.35, 0.85), (0.3, 0.25)]
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*at[0])
    page.mouse.down()
    for x, y in at[1:]:
        page.mouse.move(x, y, steps=8)
    page.mouse.up()


@pytest.mark.nightly
def test_a_saved_page_draws_the_map_and_the_matrix(server: Server, open_tab: OpenTab, tmp_path: Path) -> None:
    query = f"explore_rows={ROWS}&explore_pooling=mean&explore_large=map"
    page = open_tab(f"{server.url}/explore?{query}", width=1440)
    area_of(page)
    path = tmp_path / "saved.html"
    page.locator("label").filter(has_text="Include the vectors").click()
    becomes(page, lambda: '"npy"' in save_page(page, path), True)
    file = open_tab(path.as_uri(), dark=True, width=390, offline=True)
    view = results.find(keep_view(ROWS))
    assert view is not None
    shown = np.hstack([np.array(axes) for axes in file.evaluate(POINTS, ".plot")[-1]])
    expected = maps.pca(view.points(4, "mean")).coordinates[:, 0]
    np.testing.assert_allclose(np.sort(shown[0]), np.sort(expected), atol=1e-3)
    cells, order = view.matrix(4, "mean")
    readout = (order[20], order[3], f"{cells[20, 3] / 255:.2f}")
    becomes(file, lambda: hovered(file.locator(".ivz-cloud"), 20, 3, 128), readout)
    isoscore = "vectors.opened && vectors.cloud.numbers().isoscore?.value"
    expected = metrics.isoscore(view.points(4, "mean").astype(float))
    becomes(file, lambda: file.evaluate(isoscore), pytest.approx(expected, rel=1e-6))
    cancel = file.locator("#vectors .ivv-progress button")
    expect(cancel).to_have_css("display", "none")  # afterwards there is nothing to drop
    assert fits(file)


def test_lasso_own_sentence_address_and_files(server: Server, open_tab: OpenTab, tmp_path: Path) -> None:
    page = open_tab(f"{server.url}/explore?explore_rows={ROWS}&explore_large=map", width=1440)
    expect(page.locator(".ivz-map-plot .main-svg").first).to_be_visible(timeout=LONG)
    draw_around(page)
    selected = page.get_by_text(f"of {ROWS} points selected")
    expect(selected).to_be_visible()
    summary = selected.inner_text()
    assert 0 < int(summary.split()[0]) < ROWS
    expect(page).to_have_url(re.compile("explore_lasso="))
    stable(page, lambda: page.url)  # drawing it again is no new selection

    # the same in a fresh session, on a telephone at night
    other = open_tab(f"{page.url}&explore_colour=length", dark=True, width=390)
    expect(other.get_by_text(summary)).to_be_visible()
    expect(other.locator(".ivz-map-plot .main-svg").first).to_be_visible(timeout=LONG)
    scale = "() => document.querySelector('.ivz-map-plot')._fullLayout?.coloraxis?.colorscale"
    dark = theme.POINT_SCALES["dark"]  # the low end of the light page's would not be seen
    becomes(other, lambda: other.evaluate(scale), dark)
    becomes(other, lambda: fits(other), True)
    button = other.locator("[class*=st-key-explore_][class*=-pca-layer][class*=-csv] button")
    expect(button).to_be_visible(timeout=LONG)
    with other.expect_download() as got:
        button.click()
    table = tmp_path / "points.csv"
    got.value.save_as(table)
    points = pd.read_csv(io.BytesIO(table.read_bytes()))
    assert len(points) == ROWS and points["selected"].sum() == int(summary.split()[0])
    other.close()

    with page.expect_download() as got:
        page.locator(".ivz-map-plot .modebar-btn[data-title='Picture (SVG)']").click()
    picture = tmp_path / "map.svg"
    got.value.save_as(picture)
    about = f"demo/tiny-bert · demo/acceptability · validation · layer 4, cls, {ROWS} points, d = 128"
    assert about in picture.read_text() and page.get_by_text(about).count() == 0
    assert picture.read_text().lstrip().startswith("<svg") and got.value.suggested_filename.startswith(
        "explore-demo-tiny-bert"
    )

    field = page.get_by_role("textbox", name="Your own sentences")
    field.fill("the old dog sleeps\nnobody sleep")
    field.press("Control+Enter")
    expect(page.get_by_text("Nearest to your sentences")).to_be_visible(timeout=LONG)
    expect(page.locator(".ivz-map-plot .scatterlayer .textpoint")).to_have_count(2)  # over the map, with their names
    expect(page.get_by_text(summary)).to_be_visible()  # the selection is still there

    page.get_by_role("button", name="Clear", exact=True).click()
    expect(selected).to_have_count(0)
    expect(page).not_to_have_url(re.compile("explore_lasso"))


def alone(page: Page) -> list[dict[str, Any]]:
    """The points that no other one is near to."""
    places = page.evaluate(PLACES)
    at = np.array([(place["left"], place["top"]) for place in places])
    apart = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)) + 1e9 * np.eye(len(at))
    return [one for one, least in zip(places, apart.min(axis=1), strict=True) if least > 25]


def pixel(page: Page, point: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The colour on the screen where a point should be."""
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        return np.array(picture.convert("RGB").getpixel((round(point["left"]), round(point["top"]))), dtype=float)


def drawn(page: Page, inside: Callable[[dict[str, Any]], bool]) -> tuple[bool, list[dict[str, Any]]]:
    """Lonely points that are `inside`, and whether the first have their own colour, nine tenths of it over white."""
    points = [one for one in alone(page) if inside(one)]
    off = [np.abs(pixel(page, point) - (0.9 * np.array(point["colour"]) + 0.1 * 255)).max() for point in points[:5]]
    return bool(off) and max(off) < 25, points


def test_points_are_where_the_axes_say_and_move_with_them(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(f"{server.url}/explore?explore_rows={ROWS}&explore_large=map", width=1440)
    area = page.locator(".ivz-map-plot .nsewdrag").first
    expect(area).to_be_visible(timeout=LONG)
    area_of(page)
    becomes(page, lambda: drawn(page, lambda one: one["part"] == 0)[0], True)
    _, first = drawn(page, lambda one: one["part"] == 0)

    page.mouse.move(first[0]["left"] + 2, first[0]["top"] + 1)  # what it is
    expect(page.locator(".ivz-map-tooltip")).to_contain_text(first[0]["text"][:40])
    page.mouse.move(5, 5)
    expect(page.locator(".ivz-map-tooltip")).to_be_hidden()

    page.locator('.ivz-map-plot .modebar-btn[data-val="pan"]').click(force=True)
    box = area_of(page)
    initial = page.evaluate(RANGES)
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 70, steps=5)
    page.mouse.up()
    becomes(page, lambda: page.evaluate(RANGES) == pytest.approx(initial), False)
    panned = stable(page, lambda: page.evaluate(RANGES))
    page.mouse.wheel(0, -200)
    becomes(page, lambda: page.evaluate(RANGES) == pytest.approx(panned), False)
    before = stable(page, lambda: page.evaluate(RANGES))

    def inner() -> tuple[bool, list[dict[str, Any]]]:
        at = area.bounding_box()
        assert at is not None
        right, bottom = at["x"] + at["width"] - 20, at["y"] + at["height"] - 20
        return drawn(page, lambda one: at["x"] < one["left"] < right and at["y"] + 20 < one["top"] < bottom)

    becomes(page, lambda: inner()[0], True)
    page.locator('.ivz-map-plot .modebar-btn[data-val="lasso"]').click(force=True)
    draw_around(page)
    expect(page.get_by_text(f"of {ROWS} points selected")).to_be_visible()
    assert stable(page, lambda: page.evaluate(RANGES)) == pytest.approx(before)  # the pan stays
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.get_by_text(f"of {ROWS} points selected")).to_have_count(0)
    area_of(page)  # the button was below it
    becomes(page, lambda: inner()[0], True)

    one = next(one for one in inner()[1] if one["part"] == 0)  # its name in the legend switched off
    page.locator(".ivz-map-plot .legendtoggle").first.click()
    becomes(page, lambda: bool(np.abs(pixel(page, one) - 255).max() < 60), True)  # paper, or a line of the grid

    # another layer: its own axes, and back to those by the button
    page.get_by_role("slider", name="Layer").first.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"(before) => JSON.stringify(({RANGES})()) !== JSON.stringify(before)", arg=before)
    initial = stable(page, lambda: page.evaluate(RANGES))
    stable(page, area.bounding_box)
    area.hover()
    page.mouse.wheel(0, -300)
    becomes(page, lambda: page.evaluate(RANGES) == pytest.approx(initial), False)
    stable(page, lambda: page.evaluate(RANGES))  # plotly ends a turn of the wheel a little later
    page.locator('.ivz-map-plot .modebar-btn[data-title="Reset axes"]').click(force=True)
    becomes(page, lambda: page.evaluate(RANGES), pytest.approx(initial))
