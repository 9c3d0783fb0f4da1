"""Figures leave the page only as downloads: on the page's background, with descriptive file names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server
from tests.dashboard.made_up import config, finish
from tests.story import Story

DARK = (15, 21, 28, 255)
"""The dark page's background; its words are light."""
FIGURES = """() => [...document.querySelectorAll(".js-plotly-plot")].map(({ _context: { showSendToCloud, plotlyServerURL } }) =>
  [showSendToCloud, plotlyServerURL])"""


def swept(server: Server) -> None:
    for lam, star in ((-1, 0.125), (1, 0.5)):
        finish(server.store, config("istar", 0, {"lam": lam}), 0.75, star, group="sweep")


def saved(page: Page, figure: Locator, button: str, folder: Path) -> Path:
    expect(figure.locator(".main-svg").first).to_be_visible()
    figure.hover()
    with page.expect_download() as got:
        figure.locator(f".modebar-btn[data-title='{button}']").click()
    path = folder / got.value.suggested_filename
    got.value.save_as(path)
    return path


def test_no_figure_can_be_sent_to_a_foreign_server(server: Server, open_tab: Callable[..., Page]) -> None:
    swept(server)
    run = Story(server.store).complete()
    page = open_tab("about:blank")
    for address, count in (
        ("/tradeoffs?tradeoffs_group=sweep", 3),
        ("/results?results_group=sweep", 1),
        (f"/run?id={run.id}", 4),
    ):
        page.goto(server.url + address)
        expect(page.locator(".js-plotly-plot")).to_have_count(count)
        assert page.evaluate(FIGURES) == [[False, ""]] * count  # though plotly.js would offer it if nothing were said
        titles = [button.get_attribute("data-title") or "" for button in page.locator(".modebar-btn").all()]
        assert titles and not any("Share" in title or "loud" in title for title in titles)


@pytest.mark.parametrize("page_of", ["tradeoffs", "run"])
def test_a_dark_pages_picture_is_dark(
    server: Server, open_tab: Callable[..., Page], tmp_path: Path, page_of: str
) -> None:
    if page_of == "tradeoffs":
        swept(server)
        page = open_tab(f"{server.url}/tradeoffs?tradeoffs_group=sweep", dark=True)
        figure, name = (
            page.locator(".st-key-tradeoffs_tradeoff .js-plotly-plot"),
            "isoviz-tradeoff-demo-acceptability-accuracy",
        )
        words = "IsoScore* (all layers' tokens"
    else:
        run = Story(server.store).complete()
        page = open_tab(f"{server.url}/run?id={run.id}", dark=True)
        figure, name, words = page.locator("[data-figure=loss] .ivz-plot"), f"isoviz-{run.id}-loss", "total loss"
    png = saved(page, figure, "Picture (PNG)", tmp_path)
    assert png.name == f"{name}.png"
    with Image.open(png) as picture:
        assert picture.size[0] > 1000 and picture.convert("RGBA").getpixel((2, 2)) == DARK
    svg = saved(page, figure, "Picture (SVG)", tmp_path)
    assert svg.name == f"{name}.svg" and words in svg.read_text() and "rgb(15, 21, 28)" in svg.read_text()
