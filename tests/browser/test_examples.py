"""A stranger's first minutes: a fresh store opens on the examples, and one switch takes them away everywhere."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, Server


def test_a_fresh_store_is_full_until_the_examples_are_hidden(with_examples: Server, open_tab: OpenTab) -> None:
    tab = open_tab(with_examples.url, width=1440)
    expect(tab.get_by_role("heading", name="Example runs")).to_be_visible()
    tab.get_by_role("link", name="istar on demo/acceptability, seed 0").first.click()
    expect(tab.get_by_role("heading", name="Final numbers")).to_be_visible()
    expect(tab.get_by_text("example", exact=True).first).to_be_visible()
    expect(tab.get_by_text("This run is an example that ships with IsoViz").first).to_be_visible()
    expect(tab.locator(".ivz-matrix-canvas").first).to_be_visible()

    menu = tab.get_by_test_id("stSidebarNav")
    menu.get_by_role("link", name="Results").click()
    expect(tab.get_by_text("54 runs:")).to_be_visible()
    expect(tab.get_by_test_id("stDataFrame").first).to_be_visible()
    menu.get_by_role("link", name="Trade-offs").click()
    expect(tab.get_by_text("39 points of 39 runs")).to_be_visible()
    expect(tab.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    menu.get_by_role("link", name="What-if").click()
    expect(tab.get_by_text("The cloud becomes more isotropic")).to_be_visible()

    tab.get_by_test_id("stSidebar").get_by_text("Show examples").click()
    expect(tab.get_by_role("heading", name="No run yet")).to_be_visible()
    expect(tab).to_have_url(re.compile("examples=false"))
    for page in ("Results", "Trade-offs", "Live"):
        menu.get_by_role("link", name=page).click()
        expect(tab.get_by_role("heading", name=page, exact=True)).to_be_visible()
        expect(tab.get_by_role("heading", name="No run yet")).to_be_visible()

    fresh = open_tab(f"{with_examples.url}/results?examples=false", width=1440)
    expect(fresh.get_by_role("heading", name="No run yet")).to_be_visible()
    fresh.get_by_test_id("stSidebar").get_by_text("Show examples").click()
    expect(fresh.get_by_text("54 runs:")).to_be_visible()
