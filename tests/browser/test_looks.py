"""Figures and tiles as they look: downloads on the page's background, marks to press, and nothing that is covered or cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests import nightly
from tests.browser.conftest import OpenTab, Server, becomes, stable
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


@pytest.mark.nightly
def test_no_figure_can_be_sent_to_a_foreign_server_and_a_dark_pages_picture_is_dark(
    server: Server, open_tab: OpenTab, tmp_path: Path
) -> None:
    swept(server)
    run = Story(server.store).complete()
    page = open_tab("about:blank", dark=True)
    for address, count, place, name, words in (
        (
            "tradeoffs?tradeoffs_group=sweep",
            3,
            ".st-key-tradeoffs_tradeoff .js-plotly-plot",
            "isoviz-tradeoff-demo-acceptability-accuracy",
            "IsoScore* (all layers' tokens",
        ),
        (f"run?id={run.id}", 4, "[data-figure=loss] .ivz-plot", f"isoviz-{run.id}-loss", "total loss"),
    ):
        page.goto(f"{server.url}/{address}")
        expect(page.locator(".js-plotly-plot")).to_have_count(count)
        png = saved(page, page.locator(place), "Picture (PNG)", tmp_path)
        assert page.evaluate(FIGURES) == [[False, ""]] * count  # though plotly.js would offer it if nothing were said
        titles = [button.get_attribute("data-title") or "" for button in page.locator(".modebar-btn").all()]
        assert titles and not any("Share" in title or "loud" in title for title in titles)
        assert png.name == f"{name}.png"
        with Image.open(png) as picture:
            assert picture.size[0] > 1000 and picture.convert("RGBA").getpixel((2, 2)) == DARK
        svg = saved(page, page.locator(place), "Picture (SVG)", tmp_path)
        assert svg.name == f"{name}.svg" and words in svg.read_text() and "rgb(15, 21, 28)" in svg.read_text()


OVERLAP = """() => {
  const plot = document.querySelector(".st-key-tradeoffs_tradeoff .js-plotly-plot");
  const [buttons, legend] = [".modebar", ".legend"].map((name) => plot.querySelector(name)?.getBoundingClientRect());
  return buttons && legend && buttons.height > 0 ? buttons.bottom > legend.top : null;
}"""


def test_a_press_on_a_mark_opens_its_run_also_on_a_phone(server: Server, open_tab: OpenTab) -> None:
    for method, star in (("baseline", 0.125), ("istar", 0.5)):
        finish(server.store, config(method), 0.75, star, group="phone")
    page = open_tab(f"{server.url}/tradeoffs?tradeoffs_group=phone", width=390)
    expect(page.locator(".st-key-tradeoffs_tradeoff .legend")).to_be_visible()
    becomes(page, lambda: page.evaluate(OVERLAP), False)
    mark = page.locator(".st-key-tradeoffs_tradeoff .js-plotly-plot .point").last
    mark.scroll_into_view_if_needed()
    box = stable(page, mark.bounding_box)
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("() => location.pathname.endsWith('/run') && location.search.startsWith('?id=')")
    expect(page.get_by_role("heading", level=1)).to_contain_text("on demo/acceptability")


CROSSINGS = """() => {
  const apart = (a, b) => a.right - b.left < 1 || b.right - a.left < 1 || a.bottom - b.top < 1 || b.bottom - a.top < 1;
  return [...document.querySelectorAll(".js-plotly-plot")].flatMap((plot) => {
    const near = plot.closest(".stVerticalBlock, .ivz-figure") ?? plot;
    const boxes = (selector, of) => [...of.querySelectorAll(selector)].map((one) => one.getBoundingClientRect()).filter((box) => box.width);
    const tools = boxes(".modebar-group", plot);
    const legends = boxes(".legend", plot);
    const others = [...boxes(".xtitle, .ytitle", plot), ...boxes("select, button:not(.modebar-btn), input, h2", near)];
    const name = plot.closest("[class*=st-key-]")?.className.match(/st-key-\\S+/)?.[0];
    const crossing = (some, any) => some.some((box) => any.some((other) => !apart(box, other)));
    return [
      ...(crossing(tools, legends) ? [`${name}: tools over legend`] : []),
      ...(crossing(tools, others) ? [`${name}: tools over others`] : []),
      ...(crossing(legends, others) ? [`${name}: legend over others`] : []),
    ];
  });
}"""
SHIFTS = """window.shift = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => (window.shift += entry.hadRecentInput ? 0 : entry.value)))
    .observe({ type: "layout-shift", buffered: true })"""
"""Adds up all of them, which is never less than Chromium's measure, the largest sum of five seconds."""

CROSSING_WIDTHS = "[...document.querySelectorAll('.js-plotly-plot')].map((plot) => plot.clientWidth)"


def check_figures(page: Page, path: str) -> None:
    """No toolbar, legend or selector covers another, in a wide window and in a narrow one."""
    for width in (1440, 820, 390) if nightly.ALL else (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        stable(page, lambda: page.evaluate(CROSSING_WIDTHS))
        assert (path, width, page.evaluate(CROSSINGS)) == (path, width, [])
    page.set_viewport_size({"width": 1440, "height": 900})


def test_toolbars_legends_and_selectors_of_two_views_do_not_overlap(with_examples: Server, open_tab: OpenTab) -> None:
    path = "explore?explore_views=2&explore2_layer=1"
    page = open_tab(f"{with_examples.url}/{path}", width=1440)
    expect(page.locator(".ivz-map-plot .main-svg").first).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    check_figures(page, path)
