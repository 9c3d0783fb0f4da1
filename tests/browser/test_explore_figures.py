"""Explore's figures in a new tab: drawn with the basic script, and kept when the page redraws."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from dashboard.server import routes
from tests.browser.conftest import LONG, OpenTab, Server, keep_view

ROWS = 60
FIGURES = [
    "profile",
    "spectrum",
    "mean_activation",
    "sigma_histogram",
    "cosine_histogram",
]

FILLED = """frame => {
  const [svg, plot] = [frame.querySelector(".main-svg"), frame.querySelector(".js-plotly-plot")];
  return svg.clientWidth === plot.clientWidth && svg.clientHeight === plot.clientHeight;
}"""
ASKED = "name => performance.getEntriesByType('resource').find(entry => entry.name.includes(name))?.startTime ?? null"


@pytest.fixture(autouse=True)
def _a_view(server: Server) -> None:
    """The server has the view of the bundled model already."""
    keep_view(ROWS)


@pytest.mark.nightly
def test_figures_need_the_small_script_and_are_redrawn_in_place(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(f"{server.url}/explore?explore_rows={ROWS}&explore_tab=Means,+spreads+and+cosines", width=1440)
    expect(page.locator(".ivz-figure-frame .main-svg:first-child")).to_have_count(len(FIGURES), timeout=LONG)
    expect(page.locator(".ivz-map-plot .main-svg").first).to_be_visible(timeout=LONG)
    assert page.evaluate(ASKED, routes.plotly_path()) is None  # the map needs only the basic script, too
    assert page.evaluate(ASKED, "SyntaxHighlighter") is None

    frame = page.locator(".st-key-explore_profile .ivz-figure-frame")
    plot = frame.locator(".js-plotly-plot")
    expect(plot.locator(".main-svg").first).to_be_visible(timeout=LONG)
    assert frame.get_attribute("role") == "figure" and "over layers 0 to 4" in (frame.get_attribute("aria-label") or "")

    plot.evaluate(
        "plot => { plot.dataset.mark = 'same node';"
        " return isovizBasicPlotly.relayout(plot, {'xaxis.range': [1, 2]}).then(() => true); }"
    )
    page.locator(".st-key-explore_pooling").get_by_text("mean", exact=True).click()
    expect(page.get_by_text("layer 4, mean of the tokens")).to_be_visible()
    sizes = "plot => plot._fullData.map(t => Math.max(...t.marker.size))"
    page.wait_for_function(
        f"() => ({sizes})(document.querySelector('.st-key-explore_profile .js-plotly-plot'))[1] === 13"
    )
    assert plot.get_attribute("data-mark") == "same node"
    assert plot.evaluate("plot => plot._fullLayout.xaxis.range") == [1, 2]  # zoomed still

    page.get_by_role("button", name="Enlarge").nth(3).click()
    page.locator(".st-key-explore_size").get_by_text("3-D", exact=True).click()
    expect(page.locator(".ivz-map-plot .gl-container canvas").first).to_be_visible(timeout=LONG)
    assert page.evaluate("Boolean(isovizBasicPlotly.react) && Plotly !== isovizBasicPlotly")  # each under its own name
    page.locator(".st-key-explore_size").get_by_text("2-D", exact=True).click()
    expect(page.locator(".ivz-map-points")).to_be_visible()

    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(FILLED, arg=frame.element_handle())
    plot.hover()
    plot.locator(".modebar-btn[data-title=Fullscreen]").click()
    page.wait_for_function(
        "frame => document.fullscreenElement === frame && frame.clientHeight > 800", arg=frame.element_handle()
    )
    page.wait_for_function(FILLED, arg=frame.element_handle())
    plot.hover()
    plot.locator(".modebar-btn[data-title=Fullscreen]").click()
    page.wait_for_function(
        "frame => !document.fullscreenElement && frame.clientHeight < 400", arg=frame.element_handle()
    )
